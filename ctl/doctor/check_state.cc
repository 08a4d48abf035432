// SPDX-License-Identifier: GPL-2.0-or-later
// The sweeper: its directory, and whether it is at work.
#include "ctl/doctor/checks.h"
#include "ctl/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <sys/stat.h>

namespace flex::doctor {
namespace {

using namespace std::chrono_literals;

/// A round may take its time; this long it never takes.
Seconds patience_for(Seconds interval) {
  return std::max<Seconds>(4 * interval, 120s);
}

void check_directory(const Facts& facts, Findings& findings) {
  const FileFacts& directory = facts.state.directory;
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.slurm_user) return;
  const bool is_there = directory.exists;
  const FileFacts& looked_at = is_there ? directory : facts.state.parent;
  // Not to be seen: the sweeper's own start will tell.
  if (!looked_at.exists) return;
  std::string fault;
  if (!looked_at.is_directory)
    fault = "is no directory";
  else if (looked_at.owner != *slurm.slurm_user)
    fault = fmt::format(
        "belongs to user {}, not to SlurmUser {}", looked_at.owner, slurm.slurm_user_name);
  else if ((looked_at.mode & S_IWOTH) != 0)
    fault = "may be written by everybody";
  if (fault.empty()) return;
  findings.push_back(
      {.id = "state.directory",
       .what = fmt::format("{} {}", looked_at.path, fault),
       .why = "flex-sweeper keeps there what it must not forget, and flexctl finds it there",
       .fix = "give it to SlurmUser, mode 0750",
       .place = yaml_place(facts, "sweeper.state_dir"),
       .hints = {fmt::format("chown {} {}", slurm.slurm_user_name, looked_at.path),
                 fmt::format("chmod 0750 {}", looked_at.path)}});
}

void check_sweeper(const Facts& facts, Findings& findings) {
  const StateFacts& state = facts.state;
  if (state.directory.exists && !state.directory.may_be_read) {
    findings.push_back({.id = "sweeper.unseen",
                        .severity = Severity::Note,
                        .what = fmt::format("{} cannot be read", state.directory.path),
                        .why = "whether flex-sweeper is at work could not be seen",
                        .fix = "run flexctl doctor as root or SlurmUser",
                        .hints = {"sudo flexctl doctor"}});
    return;
  }
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
  findings.push_back(
      {.id = "sweeper.not_running",
       .severity = state.heartbeat || state.at_work_since ? Severity::Error : Severity::Warning,
       .what = state.at_work_since ? last + ", though it runs" : last,
       .why = "nobody finishes what was left half done: requests that failed, VMs nobody wants, "
              "leases that end",
       .fix = state.at_work_since ? "see in its log what it lacks"
                                  : "start flex-sweeper on the host of slurmctld",
       .hints = {"systemctl enable --now flex-sweeper", "journalctl -u flex-sweeper"}});
}

}  // namespace

void check_state(const Facts& facts, Findings& findings) {
  if (!facts.state.was_looked_at || !facts.yaml.is_good()) return;
  check_directory(facts, findings);
  check_sweeper(facts, findings);
}

}  // namespace flex::doctor
