// SPDX-License-Identifier: GPL-2.0-or-later
// The sweeper: its directory, and whether it is at work.
#include "ctl/doctor/checks.h"
#include "ctl/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <sys/stat.h>

namespace flex::doctor {
namespace {

using namespace std::chrono_literals;

/// A round may take its time; this long it never takes.
Seconds patience_for(Seconds interval) {
  return std::max<Seconds>(4 * interval, 120s);
}

/// flex-sweeper makes the directory itself where it may; the one above it is nobody's to change.
void check_missing(const Facts& facts, Findings& findings) {
  const FileFacts& parent = facts.state.parent;
  const SlurmFacts& slurm = facts.slurm;
  const std::string& path = facts.state.directory.path;
  if (parent.exists && parent.is_directory && slurm.user_may(parent, S_IWOTH | S_IXOTH)) return;
  // Not to be seen: the sweeper's own start will tell.
  if (!parent.exists && parent.error != ENOENT) return;
  findings.push_back(
      {.id = "state.directory",
       .what = fmt::format("there is no {}, and SlurmUser {} cannot make it: {}",
                           path,
                           slurm.slurm_user_name,
                           parent.exists ? fmt::format("{} is not its to write to", parent.path)
                                         : fmt::format("there is no {}", parent.path)),
       .why = "flex-sweeper keeps there what it must not forget, and does not start without it",
       .fix = "make it, and give it to SlurmUser",
       .place = yaml_place(facts, "sweeper.state_dir"),
       .hints = {fmt::format("install -d -o {} -m 0750 {}", slurm.slurm_user_name, path)}});
}

void check_directory(const Facts& facts, Findings& findings) {
  const FileFacts& directory = facts.state.directory;
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.slurm_user) return;
  if (!directory.exists) {
    if (directory.error == ENOENT) check_missing(facts, findings);
    return;
  }
  std::string fault;
  if (!directory.is_directory)
    fault = "is no directory";
  else if (directory.owner != *slurm.slurm_user)
    fault = fmt::format(
        "belongs to user {}, not to SlurmUser {}", directory.owner, slurm.slurm_user_name);
  else if ((directory.mode & S_IWOTH) != 0)
    fault = "may be written by everybody";
  if (fault.empty()) return;
  findings.push_back(
      {.id = "state.directory",
       .what = fmt::format("{} {}", directory.path, fault),
       .why = "flex-sweeper keeps there what it must not forget, and flexctl finds it there",
       .fix = "give it to SlurmUser, mode 0750",
       .place = yaml_place(facts, "sweeper.state_dir"),
       .hints = {fmt::format("chown {} {}", slurm.slurm_user_name, directory.path),
                 fmt::format("chmod 0750 {}", directory.path)}});
}

void check_sweeper(const Facts& facts, Findings& findings) {
  const StateFacts& state = facts.state;
  const bool is_hidden = !state.directory.exists && state.directory.error == EACCES;
  if (is_hidden || (state.directory.exists && !state.directory.may_be_read)) {
    findings.push_back({.id = "sweeper.unseen",
                        .severity = Severity::Note,
                        .what = fmt::format("{} cannot be read", state.directory.path),
                        .why = "whether flex-sweeper is at work could not be seen",
                        .fix = "run flexctl doctor as root or SlurmUser",
                        .hints = {"sudo flexctl doctor"}});
    return;
  }
  // It cannot start, and it is told why.
  const bool has_no_config =
      std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.id == "config.owner";
      });
  if (has_no_config && !state.at_work_since) return;
  const Seconds patience = patience_for(facts.yaml.config().sweeper.interval);
  const auto is_fresh = [&](const std::optional<TimePoint>& time) {
    return time && facts.now - *time <= patience;
  };
  if (is_fresh(state.heartbeat)) return;
  if (is_fresh(state.at_work_since)) {
    findings.push_back({.id = "sweeper.starting",
                        .severity = Severity::Note,
                        .what = "flex-sweeper has started, and not completed a round yet",
                        .why = "whether it is well will be seen then",
                        .fix = "look again in a minute",
                        .hints = {"flexctl status"}});
    return;
  }
  const std::string last = state.heartbeat
                               ? fmt::format("the last complete round of flex-sweeper was {} ago",
                                             span_text(facts.now - *state.heartbeat))
                               : std::string("flex-sweeper has not completed a round yet");
  Finding finding{
      .id = "sweeper.not_running",
      .severity = state.heartbeat || state.at_work_since ? Severity::Error : Severity::Warning,
      .what = state.at_work_since ? last + ", though it runs" : last,
      .why =
          "nobody finishes what was left half done: requests that failed, VMs nobody wants, "
          "leases that end",
      .fix = state.at_work_since ? "see in its log what it lacks"
                                 : "start flex-sweeper on the host of slurmctld",
      .hints = {"systemctl enable --now flex-sweeper", "journalctl -u flex-sweeper"}};
  const std::string& user = facts.slurm.slurm_user_name;
  if (!state.at_work_since && !user.empty() && user != "slurm") {
    finding.fix += fmt::format("; its unit has User=slurm, and SlurmUser is {}", user);
    finding.hints.insert(
        finding.hints.begin(),
        {"systemctl edit flex-sweeper", "[Service]", fmt::format("User={}", user)});
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void check_state(const Facts& facts, Findings& findings) {
  if (!facts.state.was_looked_at || !facts.yaml.is_good()) return;
  check_directory(facts, findings);
  check_sweeper(facts, findings);
}

}  // namespace flex::doctor
