// SPDX-License-Identifier: GPL-2.0-or-later
// Nodes of nodesets against nodes of slurm.conf, and static nodes against suspending.
#include "ctl/doctor/checks.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex::doctor {
namespace {

std::string nodes_key(const NodesetConfig& nodeset, std::string_view key) {
  return fmt::format("nodesets.{}.{}", nodeset.name, key);
}

void check_missing(const Facts& facts, const NodesetConfig& nodeset, Findings& findings) {
  std::vector<NodeName> missing;
  for (const NodeName& node : nodeset.nodes)
    if (!facts.slurm.nodes.contains(node)) missing.push_back(node);
  if (missing.empty()) return;
  const std::string list = fold_hostlist(missing);
  findings.push_back(
      {.id = "nodes.missing",
       .what = fmt::format("nodeset {}: {} not in slurm.conf",
                           nodeset.name,
                           missing.size() == 1 ? list + " is" : list + " are"),
       .why = "no job can ever get them",
       .fix =
           fmt::format("add NodeName={} … State=CLOUD to slurm.conf, or take them out here", list),
       .place = yaml_place(facts, nodes_key(nodeset, "nodes")),
       .hints = {fmt::format("NodeName={} CPUs=… RealMemory=… State=CLOUD", list)}});
}

/// By the line that declares them: each is a line to change.
void check_state_of(const Facts& facts, Findings& findings) {
  std::map<std::pair<std::string, int>, std::vector<NodeName>> wrong;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    for (const NodeName& node : nodeset.nodes) {
      const auto found = facts.slurm.nodes.find(node);
      if (found != facts.slurm.nodes.end() && found->second.state != "CLOUD")
        wrong[{found->second.place.file, found->second.place.line}].push_back(node);
    }
  for (const auto& [place, nodes] : wrong) {
    const std::string& state = facts.slurm.nodes.at(nodes.front()).state;
    const std::string list = fold_hostlist(nodes);
    findings.push_back(
        {.id = "nodes.not_cloud",
         .what = fmt::format(
             "{}: State is {}, not CLOUD", list, state.empty() ? "not set (UNKNOWN)" : state),
         .why = "slurmctld takes them for machines that are always there, and never "
                "asks for their VMs",
         .fix = "write State=CLOUD in this line",
         .place = {place.first, place.second, 0},
         .hints = {fmt::format("NodeName={} … State=CLOUD", list)}});
  }
}

void check_unmanaged(const Facts& facts, Findings& findings) {
  std::map<std::pair<std::string, int>, std::vector<NodeName>> unmanaged;
  for (const auto& [name, node] : facts.slurm.nodes)
    if (node.state == "CLOUD" && facts.yaml.config().find(name) == nullptr)
      unmanaged[{node.place.file, node.place.line}].push_back(name);
  for (const auto& [place, nodes] : unmanaged) {
    const std::string list = fold_hostlist(nodes);
    findings.push_back(
        {.id = "nodes.unmanaged",
         .what = fmt::format("{}: State=CLOUD, but in no nodeset", list),
         .why = "there is one ResumeProgram for all nodes: flex-resume does not know these, and "
                "jobs on them wait for ever",
         .fix = fmt::format(
             "add {} to a nodeset of {}, or take them out of slurm.conf", list, facts.yaml.file),
         .place = {place.first, place.second, 0},
         .hints = {"nodesets:", "  NAME:", fmt::format("    nodes: {}", list)}});
  }
}

// ---- static nodes ----

using NodeSetOf = std::set<NodeName>;

/// SuspendExcNodes: "a[0-1]", "a[0-9]:4,b0"; a count of nodes names none of them for sure, but is
/// taken for all of them.
NodeSetOf excluded_nodes(const Facts& facts) {
  NodeSetOf excluded;
  std::string list = facts.slurm.conf->get("SuspendExcNodes");
  std::string plain;
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') ++depth;
    if (list[i] == ']') --depth;
    if (list[i] == ':' && depth == 0) {
      while (i + 1 < list.size() && list[i + 1] != ',') ++i;
      continue;
    }
    plain += list[i];
  }
  const auto nodes = listed_nodes(facts, plain);
  excluded.insert(nodes.begin(), nodes.end());
  return excluded;
}

/// A partition of SuspendExcParts, or whose SuspendTime never comes, keeps its nodes.
bool keeps_nodes(const Facts& facts, const ConfEntry& partition) {
  if (has_word(facts.slurm.conf->get("SuspendExcParts"), partition.name)) return true;
  const std::string own = partition.get("SuspendTime");
  return parse_slurm_number(own).is_infinite;
}

void check_static(const Facts& facts, Findings& findings) {
  NodeSetOf kept = excluded_nodes(facts);
  for (const ConfEntry& partition : facts.slurm.conf->partitions) {
    if (!keeps_nodes(facts, partition)) continue;
    const auto nodes = partition_nodes(facts, partition);
    kept.insert(nodes.begin(), nodes.end());
  }
  for (const ConfEntry& entry : facts.slurm.conf->nodes) {
    if (!parse_slurm_number(entry.get("SuspendTime")).is_infinite) continue;
    if (const auto nodes = expand_hostlist(entry.name)) kept.insert(nodes->begin(), nodes->end());
  }
  const auto loose_of = [&](const NodesetConfig& nodeset) {
    std::vector<NodeName> loose;
    for (const NodeName& node : nodeset.static_nodes)
      if (!kept.contains(node) && facts.slurm.nodes.contains(node)) loose.push_back(node);
    return loose;
  };
  // There is one such line, and the last one counts: each finding names all that it lacks.
  std::vector<NodeName> all;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    const auto loose = loose_of(nodeset);
    all.insert(all.end(), loose.begin(), loose.end());
  }
  const std::string given = facts.slurm.conf->get("SuspendExcNodes");
  const std::string line =
      fmt::format("{}{}{}", given, given.empty() ? "" : ",", fold_hostlist(all));
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    const auto loose = loose_of(nodeset);
    if (loose.empty()) continue;
    Finding finding{.id = "nodes.static_suspend",
                    .what = fmt::format("nodeset {}: static nodes {} are not kept from suspending",
                                        nodeset.name,
                                        fold_hostlist(loose)),
                    .why =
                        "slurmctld ends their VMs when they are idle, and the sweeper asks for "
                        "new ones, again and again",
                    .place = conf_place(facts, "SuspendExcNodes")};
    write_setting(finding, "SuspendExcNodes", line);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void check_nodes(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf || !facts.yaml.is_good()) return;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    check_missing(facts, nodeset, findings);
  check_state_of(facts, findings);
  check_unmanaged(facts, findings);
  check_static(facts, findings);
}

}  // namespace flex::doctor
