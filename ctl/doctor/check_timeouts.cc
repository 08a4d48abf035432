// SPDX-License-Identifier: GPL-2.0-or-later
// ResumeTimeout, SuspendTime and SuspendTimeout, of the cluster and of partitions with our nodes.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex::doctor {
namespace {

constexpr Release kKnowsInfinite{25, 5, 0};
constexpr std::int64_t kMost = 65533;
constexpr std::int64_t kUnset = 65534;
constexpr std::int64_t kInfinite = 65535;
/// How long the sweeper may be away before jobs that wait are lost.
constexpr std::int64_t kShortResume = 3600;
constexpr std::int64_t kDefaultResume = 60;
/// A VM's name is free only when the VM is gone, which takes about a minute.
constexpr std::int64_t kShortSuspend = 60;
constexpr std::int64_t kDefaultSuspend = 30;

/// Where a timeout may stand: the whole file, or a partition's line.
struct Spot {
  const ConfEntry* partition = nullptr;  ///< null: the whole file
  std::string text{};
  Place place{};

  /// "" or "partition a3u: ".
  [[nodiscard]] std::string who() const {
    return partition == nullptr ? std::string{} : fmt::format("partition {}: ", partition->name);
  }

  /// What to write, there.
  void write(Finding& finding, std::string_view key, std::string_view value) const {
    if (partition == nullptr) return write_setting(finding, key, value);
    finding.fix = fmt::format("write {}={} in this line", key, value);
    finding.hints.push_back(fmt::format("PartitionName={} … {}={}", partition->name, key, value));
  }
};

std::vector<NodeName> our_nodes(const Facts& facts, const ConfEntry& partition) {
  std::vector<NodeName> nodes = partition_nodes(facts, partition);
  std::erase_if(nodes, [&](const NodeName& node) { return !is_ours(facts, node); });
  return nodes;
}

/// The cluster's setting, and that of each partition of ours that has its own.
std::vector<Spot> spots_of(const Facts& facts, std::string_view key) {
  std::vector<Spot> spots{{.text = facts.slurm.conf->get(key), .place = conf_place(facts, key)}};
  for (const ConfEntry& partition : facts.slurm.conf->partitions)
    if (partition.has(key) && !our_nodes(facts, partition).empty())
      spots.push_back({&partition, partition.get(key), to_place(partition.place)});
  return spots;
}

/// Slurm takes no such number, or does not take it for one.
bool is_bad(const SlurmNumber& number) {
  return !number.is_good || number.value > kInfinite || number.value == kUnset;
}

/// Those that count for a node of ours, and those that are wrong in themselves: a node has the
/// longest of its partitions, and that of the cluster if none of them has one.
std::vector<Spot> used_spots(const Facts& facts, std::string_view key) {
  const std::vector<Spot> spots = spots_of(facts, key);
  std::vector<std::int64_t> lengths;
  std::vector<bool> is_used;
  for (const Spot& spot : spots) {
    const SlurmNumber number = parse_slurm_number(spot.text);
    lengths.push_back(number.is_infinite ? kInfinite : number.value);
    is_used.push_back(is_bad(number));
  }
  std::map<NodeName, std::size_t> longest;
  for (std::size_t i = 1; i < spots.size(); ++i) {
    if (is_used[i]) continue;
    for (const NodeName& node : our_nodes(facts, *spots[i].partition)) {
      std::size_t& best = longest.try_emplace(node, i).first->second;
      if (lengths[i] > lengths[best]) best = i;
    }
  }
  bool has_ours = false;
  for (const auto& [node, known] : facts.slurm.nodes) {
    if (!is_ours(facts, node)) continue;
    has_ours = true;
    const auto found = longest.find(node);
    is_used[found == longest.end() ? 0 : found->second] = true;
  }
  if (!has_ours) is_used[0] = true;
  std::vector<Spot> used;
  for (std::size_t i = 0; i < spots.size(); ++i)
    if (is_used[i]) used.push_back(spots[i]);
  return used;
}

/// What is wrong with a ResumeTimeout; empty: nothing.
struct Verdict {
  Severity severity = Severity::Error;
  std::string what{};
  std::string why{};
};

Verdict judge_resume(const SlurmNumber& number, const std::string& text, bool knows_infinite) {
  if (!number.is_good || number.value > kInfinite)
    return {.what = fmt::format("ResumeTimeout is {}", text),
            .why = "slurmctld takes at most 65535, and does not start with this"};
  if (number.value == kUnset)
    return {.what = "ResumeTimeout is 65534",
            .why = "to Slurm this number means that nothing is set"};
  if ((number.is_infinite || number.value == kInfinite) && !knows_infinite)
    return {.severity = Severity::Warning,
            .what = fmt::format("ResumeTimeout is {}", text),
            .why =
                "only Slurm 25.05 and later take it for infinite; to this one it is 65535 "
                "seconds, and programs that read it may think otherwise"};
  if (number.is_infinite || number.value == kInfinite) return {};
  if (!number.is_set)
    return {
        .what = fmt::format("ResumeTimeout is not set ({} s)", kDefaultResume),
        .why = "a job in Google's queue is given up after a minute, and queues again at the end"};
  if (number.value < kShortResume)
    return {.severity = Severity::Warning,
            .what = fmt::format("ResumeTimeout is {} s", number.value),
            .why =
                "flex-sweeper winds this clock up while a job waits in Google's queue; if the "
                "sweeper is away for longer than this, waiting jobs lose their place"};
  return {};
}

void check_resume(const Facts& facts, Findings& findings) {
  const bool knows_infinite = release_of(facts) >= kKnowsInfinite;
  const std::string good = knows_infinite ? "INFINITE" : std::to_string(kMost);
  for (const Spot& spot : used_spots(facts, "ResumeTimeout")) {
    Verdict verdict = judge_resume(parse_slurm_number(spot.text), spot.text, knows_infinite);
    if (verdict.what.empty()) continue;
    Finding finding{.id = "slurm.resume_timeout",
                    .severity = verdict.severity,
                    .what = spot.who() + verdict.what,
                    .why = verdict.why,
                    .place = spot.place};
    spot.write(finding, "ResumeTimeout", good);
    findings.push_back(std::move(finding));
  }
}

void check_suspend_timeout(const Facts& facts, Findings& findings) {
  for (const Spot& spot : used_spots(facts, "SuspendTimeout")) {
    const SlurmNumber number = parse_slurm_number(spot.text);
    if (number.is_infinite || (number.is_set ? number.value : kDefaultSuspend) >= kShortSuspend)
      continue;
    Finding finding{
        .id = "slurm.suspend_timeout",
        .severity = Severity::Warning,
        .what = number.is_set ? fmt::format("{}SuspendTimeout is {} s", spot.who(), number.value)
                              : fmt::format("SuspendTimeout is not set ({} s)", kDefaultSuspend),
        .why =
            "a VM takes a minute or two to go: a node that gets the next job before that waits "
            "for its name to be free",
        .place = spot.place};
    spot.write(finding, "SuspendTimeout", "120");
    findings.push_back(std::move(finding));
  }
}

bool is_finite(const std::string& text) {
  const SlurmNumber number = parse_slurm_number(text);
  return number.is_set && !number.is_infinite;
}

/// Without a SuspendTime anywhere Slurm never saves power, and never calls ResumeProgram.
void check_suspend_time(const Facts& facts, Findings& findings) {
  const auto spots = spots_of(facts, "SuspendTime");
  if (std::any_of(
          spots.begin(), spots.end(), [](const Spot& spot) { return is_finite(spot.text); }))
    return;
  Finding finding{.id = "slurm.suspend_time",
                  .what = spots.front().text.empty()
                              ? std::string("SuspendTime is not set")
                              : fmt::format("SuspendTime is {}", spots.front().text),
                  .why = "without it Slurm starts no cloud node and ends none",
                  .place = spots.front().place};
  write_setting(finding, "SuspendTime", "300");
  findings.push_back(std::move(finding));
}

}  // namespace

void check_timeouts(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf) return;
  check_resume(facts, findings);
  check_suspend_timeout(facts, findings);
  check_suspend_time(facts, findings);
}

}  // namespace flex::doctor
