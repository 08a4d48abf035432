// SPDX-License-Identifier: GPL-2.0-or-later
// spent_node, of rule lease_end: a VM of an exclusive partition was made for one job. When that is
// done the VM goes (seen twice), whatever is left of its lease. Where jobs share nodes, what is
// left is for those that fit, until SuspendTime.
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <unordered_map>

namespace flex {

namespace {

/// Nodes of ours that are in a partition, and whether all of theirs are exclusive.
std::unordered_map<NodeName, bool> find_exclusive(const Round& round) {
  std::unordered_map<NodeName, bool> exclusive;
  for (const Partition& partition : round.shot.partitions.items) {
    for (const NodeName& name : partition.nodes) {
      if (!round.memory.worked.contains(name)) continue;
      const auto known = exclusive.try_emplace(name, true).first;
      known->second = known->second && partition.is_exclusive;
    }
  }
  return exclusive;
}

/// Which nodes have had a job on the VM that they have now.
void remember_work(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.is_static || !node.has_vm()) {
      round.memory.worked.erase(node.name);
      continue;
    }
    if (!node.jobs.empty()) {
      round.memory.worked[node.name] = node.entry->id;
      continue;
    }
    const auto known = round.memory.worked.find(node.name);
    if (known != round.memory.worked.end() && known->second != node.entry->id)
      round.memory.worked.erase(known);
  }
  std::erase_if(round.memory.worked,
                [&](const auto& entry) { return round.config.find(entry.first) == nullptr; });
}

/// A drained one is somebody's business.
bool is_free_of_work(const NodePicture& node) {
  const Node& state = *node.node;
  return is_up(state) && is_idle(state) && node.jobs.empty() && !is_completing(state) &&
         !is_draining(state) && !is_power_down_requested(state);
}

}  // namespace

void spent_node(Round& round) {
  remember_work(round);
  if (round.memory.worked.empty()) return;
  std::vector<NodeName> spent;
  const auto exclusive = find_exclusive(round);
  for (const NodePicture& node : round.picture.nodes()) {
    const auto found = exclusive.find(node.name);
    if (found == exclusive.end() || !found->second || node.node == nullptr) continue;
    if (!round.is_free(node.name) || !is_free_of_work(node)) continue;
    const Sighting& seen = round.see(Rule::LeaseEnd, vm_key(node) + " spent");
    if (!seen.is_twice() || round.spend(1) == 0) continue;
    round.claim(node.name);
    spent.push_back(node.name);
  }
  if (spent.empty()) return;
  round.add(
      Rule::LeaseEnd,
      "an exclusive partition's job is done",
      UpdateNodes{.request = NodeRequest::PowerDown, .nodes = std::move(spent), .reason = {}});
}

}  // namespace flex
