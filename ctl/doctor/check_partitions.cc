// SPDX-License-Identifier: GPL-2.0-or-later
// Partitions with our nodes: how long a job may be, and how it shares nodes.
#include "ctl/doctor/checks.h"
#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex::doctor {
namespace {

/// The longest job that a VM of the nodeset outlives. Slurm counts minutes.
Seconds usable_time(const NodesetConfig& nodeset) {
  constexpr Seconds kMinute{60};
  return std::max(nodeset.dws_flex.max_run_duration - nodeset.run_duration_margin, kMinute);
}

/// A margin that leaves nothing for a job.
void check_margin(const Facts& facts, const NodesetConfig& nodeset, Findings& findings) {
  const Seconds life = nodeset.dws_flex.max_run_duration;
  if (nodeset.run_duration_margin < life) return;
  const std::string key = fmt::format("nodesets.{}.run_duration_margin", nodeset.name);
  findings.push_back(
      {.id = "partition.margin",
       .severity = Severity::Warning,
       .what =
           fmt::format("nodeset {}: run_duration_margin {} leaves nothing of max_run_duration {}",
                       nodeset.name,
                       format_duration(nodeset.run_duration_margin),
                       format_duration(life)),
       .why = "the margin is for boot, prolog and epilog: the VM of any job may end before the job",
       .fix = "make it shorter, or max_run_duration longer",
       .place = yaml_place(facts, facts.yaml.lines.contains(key) ? key : "defaults"),
       .hints = {fmt::format("run_duration_margin: {}", format_duration(life / 10))}});
}

/// The longest job that the VMs of all its nodesets outlive; nothing: none of its nodes is ours.
std::optional<Seconds> longest_job(const Facts& facts, const std::vector<NodeName>& nodes) {
  std::optional<Seconds> longest;
  std::set<std::size_t> seen;
  for (const NodeName& node : nodes) {
    const Config::Place* const place = facts.yaml.config().find(node);
    if (place == nullptr || !seen.insert(place->nodeset).second) continue;
    const NodesetConfig& nodeset = facts.yaml.config().nodesets[place->nodeset];
    const Seconds limit = usable_time(nodeset);
    longest = longest ? std::min(*longest, limit) : limit;
  }
  return longest;
}

void check_max_time(const ConfEntry& partition, Seconds longest, Findings& findings) {
  const SlurmNumber time = parse_slurm_time(partition.get("MaxTime"));
  if (time.is_set && time.is_good && !time.is_infinite && time.value <= longest.count()) return;
  const std::string good = format_slurm_time(longest);
  findings.push_back(
      {.id = "partition.max_time",
       .severity = Severity::Warning,
       .what = fmt::format("partition {}: MaxTime is {}, but its VMs live for jobs of at most {}",
                           partition.name,
                           time.is_set ? partition.get("MaxTime") : "not set (UNLIMITED)",
                           good),
       .why = "a Flex Start VM ends after max_run_duration, at most 7 days, whatever runs on it: a "
              "longer job is killed before its time limit",
       .fix = fmt::format("write MaxTime={} in this line", good),
       .place = to_place(partition.place),
       .hints = {fmt::format("PartitionName={} … MaxTime={}", partition.name, good)}});
}

void check_default_time(const ConfEntry& partition, Findings& findings) {
  const SlurmNumber time = parse_slurm_time(partition.get("DefaultTime"));
  if (time.is_set && time.is_good && !time.is_infinite) return;
  findings.push_back(
      {.id = "partition.default_time",
       .severity = Severity::Warning,
       .what = fmt::format("partition {}: DefaultTime is {}",
                           partition.name,
                           time.is_set ? partition.get("DefaultTime") : "not set (MaxTime)"),
       .why = "a job without --time asks for VMs for as long as there are, and waits for them "
              "accordingly",
       .fix = "write DefaultTime=01:00:00 in this line, or what suits your jobs",
       .place = to_place(partition.place),
       .hints = {fmt::format("PartitionName={} … DefaultTime=01:00:00", partition.name)}});
}

void check_sharing(const ConfEntry& partition, Findings& findings) {
  const std::string sharing =
      partition.has("OverSubscribe") ? partition.get("OverSubscribe") : partition.get("Shared");
  const std::string exclusive = lower_case(partition.get("Exclusive"));
  if (lower_case(sharing) == "exclusive" || exclusive == "node" || exclusive == "yes") return;
  findings.push_back(
      {.id = "partition.oversubscribe",
       .severity = Severity::Note,
       .what = fmt::format("partition {}: OverSubscribe is {}, not EXCLUSIVE",
                           partition.name,
                           sharing.empty() ? "not set (NO)" : sharing),
       .why = "jobs may share a VM, whose life was made for the first of them; the others start "
              "only if they fit into what is left",
       .fix =
           "write OverSubscribe=EXCLUSIVE in this line unless jobs smaller than a node are common",
       .place = to_place(partition.place),
       .hints = {fmt::format("PartitionName={} … OverSubscribe=EXCLUSIVE", partition.name)}});
}

/// Nodes that are in no partition are no use to anybody.
void check_homeless(const Facts& facts, const std::set<NodeName>& housed, Findings& findings) {
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    std::vector<NodeName> homeless;
    for (const NodeName& node : nodeset.nodes)
      if (facts.slurm.nodes.contains(node) && !housed.contains(node)) homeless.push_back(node);
    if (homeless.empty()) continue;
    const std::string list = fold_hostlist(homeless);
    findings.push_back(
        {.id = "partition.none",
         .severity = Severity::Warning,
         .what = fmt::format("nodeset {}: {} in no partition",
                             nodeset.name,
                             homeless.size() == 1 ? list + " is" : list + " are"),
         .why = "no job can ask for them",
         .fix = "add them to the Nodes= of a partition",
         .place = {.file = facts.slurm.file},
         .hints = {fmt::format("PartitionName={} Nodes={} MaxTime={} DefaultTime=01:00:00 "
                               "OverSubscribe=EXCLUSIVE State=UP",
                               nodeset.name,
                               list,
                               format_slurm_time(usable_time(nodeset)))}});
  }
}

}  // namespace

void check_partitions(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf || !facts.yaml.is_good()) return;
  std::set<NodeName> housed;
  for (const ConfEntry& partition : facts.slurm.conf->partitions) {
    const std::vector<NodeName> nodes = partition_nodes(facts, partition);
    housed.insert(nodes.begin(), nodes.end());
    const auto longest = longest_job(facts, nodes);
    if (!longest) continue;
    check_max_time(partition, *longest, findings);
    check_default_time(partition, findings);
    check_sharing(partition, findings);
  }
  check_homeless(facts, housed, findings);
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    check_margin(facts, nodeset, findings);
}

}  // namespace flex::doctor
