// SPDX-License-Identifier: GPL-2.0-or-later
// Nodes of nodesets against nodes of slurm.conf.
#include "ctl/doctor/checks.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <map>

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

}  // namespace

void check_nodes(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf || !facts.yaml.is_good()) return;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    check_missing(facts, nodeset, findings);
  check_state_of(facts, findings);
  check_unmanaged(facts, findings);
}

}  // namespace flex::doctor
