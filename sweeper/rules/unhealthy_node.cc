// SPDX-License-Identifier: GPL-2.0-or-later
// unhealthy_node: a health check, prolog or epilog has drained a node for one of repair_reasons:
// its hardware is broken, and another VM has other hardware. When no job is on it the VM goes, and
// the node is whole again: static_node or the next job gets it a new one. A node that fails again
// and again stays drained after max_repairs of a day: then it is not the VM.
// The same for a node that hangs: its VM runs, slurmctld has set it DOWN because it does not
// respond, and nobody has powered it down within boot_timeout.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex {

namespace {

constexpr Seconds kDay{24 * 3600};

/// The history of a node, without what is older than a day; a clock that was set back makes what
/// lies in the future worthless.
Repairs& history_of(Round& round, const NodePicture& node) {
  Repairs& repairs = round.memory.repairs[node.name];
  std::erase_if(repairs.times, [&](TimePoint time) {
    return time > round.shot.now || round.shot.now - time >= kDay;
  });
  return repairs;
}

bool is_at_work(const NodePicture& node) {
  return !node.jobs.empty() || is_allocated(*node.node) || is_completing(*node.node);
}

/// slurmctld has set it DOWN by itself. What an admin has drained or set DOWN has another reason,
/// or a drain.
bool is_hung(const Round& round, const NodePicture& node) {
  if (node.node == nullptr || round.nodeset_of(node).max_repairs == 0) return false;
  const Node& state = *node.node;
  return is_up(state) && is_down(state) && !is_draining(state) &&
         state.reason.starts_with("Not responding") && node.has_vm() &&
         node.entry->status == InstanceStatus::Running;
}

/// What the round wants, by its text so that one call serves many nodes.
struct Wishes {
  std::map<std::string, std::vector<NodeName>> down{};
  std::map<std::string, std::vector<const NodePicture*>> hung{};
  std::map<std::string, std::vector<NodeName>> given_up{};
  std::vector<NodeName> undrained{};
};

/// One more repair of the node, unless it is known already; false if there were too many.
bool count_repair(Round& round, const NodePicture& node) {
  Repairs& repairs = history_of(round, node);
  if (repairs.is_under_way && repairs.vm == node.entry->id) return true;
  if (repairs.times.size() >= round.nodeset_of(node).max_repairs) return false;
  repairs.times.push_back(round.shot.now);
  repairs.reason = node.node->reason;
  repairs.vm = node.entry->id;
  repairs.is_under_way = true;
  repairs.has_given_up = false;
  return true;
}

void give_up(Round& round, const NodePicture& node, Wishes& wishes) {
  Repairs& repairs = history_of(round, node);
  repairs.has_given_up = true;
  repairs.is_under_way = false;
  repairs.reason = node.node->reason;
  repairs.vm = node.entry->id;
  wishes.given_up[fmt::format("{}{} repairs: {}", kGaveUp, repairs.times.size(), node.node->reason)]
      .push_back(node.name);
}

/// The VM is there: it goes.
void replace(Round& round, const NodePicture& node, Wishes& wishes) {
  // Asked for already: it goes when its job has ended.
  if (is_at_work(node) || is_power_down_requested(*node.node)) return;
  const Sighting& seen = round.see(Rule::UnhealthyNode, vm_key(node));
  if (!seen.is_twice()) return;
  if (!count_repair(round, node)) {
    round.claim(node.name);
    return give_up(round, node, wishes);
  }
  if (round.spend(1) == 0) return;
  round.claim(node.name);
  wishes
      .down[fmt::format("repair {} of {} in a day: {}",
                        round.memory.repairs[node.name].times.size(),
                        round.nodeset_of(node).max_repairs,
                        node.node->reason)]
      .push_back(node.name);
}

/// So many nodes that hang at once, and more than half of those that are up: rather slurmctld's
/// network than their VMs. Look for so many times longer.
constexpr std::size_t kMany = 20;
constexpr int kDoubt = 4;

bool are_many_hung(const Round& round) {
  std::size_t up = 0;
  std::size_t hung = 0;
  for (const NodePicture& node : round.picture.nodes()) {
    up += node.node != nullptr && is_up(*node.node) && node.has_vm() ? 1 : 0;
    hung += is_hung(round, node) ? 1 : 0;
  }
  return hung >= kMany && hung * 2 > up;
}

void replace_hung(Round& round, const NodePicture& node, bool are_many, Wishes& wishes) {
  const Sighting& seen = round.see(Rule::UnhealthyNode, vm_key(node) + " hung");
  const Seconds limit = round.nodeset_of(node).boot_timeout * (are_many ? kDoubt : 1);
  if (!seen.is_twice() || seen.age() < limit) return;
  if (is_at_work(node) || is_power_down_requested(*node.node)) return;
  round.claim(node.name);
  if (!count_repair(round, node)) return give_up(round, node, wishes);
  wishes
      .hung[fmt::format(
          "repair {} of {} in a day: its VM runs, but slurmd has not responded for {}",
          round.memory.repairs[node.name].times.size(),
          round.nodeset_of(node).max_repairs,
          format_slurm_time(limit))]
      .push_back(&node);
}

/// The VMs go with their serial logs kept. With a reason of ours unbacked_node takes the DOWN away
/// when the nodes are off.
void power_down_hung(Round& round,
                     const std::string& why,
                     const std::vector<const NodePicture*>& hung) {
  std::map<MigName, std::vector<Instance>> doomed;
  std::vector<NodeName> nodes;
  for (const NodePicture* node : hung) {
    doomed[node->entry.group->group.name].push_back(*node->entry);
    nodes.push_back(node->name);
  }
  std::size_t deleted = 0;
  for (const auto& [group, instances] : doomed)
    deleted += delete_instances(round, Rule::UnhealthyNode, why, group, instances, true);
  // What the budget does not allow now is done in the next round.
  if (deleted < nodes.size()) return;
  round.add(Rule::UnhealthyNode,
            why,
            UpdateNodes{.request = NodeRequest::PowerDown,
                        .nodes = std::move(nodes),
                        .reason = fmt::format("{}{}", kNotePrefix, why)});
}

/// We have powered it down, the VM is gone, and Slurm has left the drain. One that was drained
/// while it was off has no hardware to be ill: that is an admin's wish.
void make_whole(Round& round, const NodePicture& node, Wishes& wishes) {
  const auto known = round.memory.repairs.find(node.name);
  const bool is_under_way = known != round.memory.repairs.end() && known->second.is_under_way;
  const bool is_clear = !node.entry || node.entry->is_dead();
  if (!is_under_way || !is_clear) return;
  if (!round.see(Rule::UnhealthyNode, node.name.text + " off").is_twice()) return;
  round.claim(node.name);
  wishes.undrained.push_back(node.name);
}

/// What is over: a repair when the node is no longer drained, all of it when an admin has undrained
/// one that was given up on, and after a day without trouble.
void forget_over(Round& round) {
  for (auto known = round.memory.repairs.begin(); known != round.memory.repairs.end();) {
    const NodePicture* node = round.picture.find(known->first);
    if (node == nullptr || node->node == nullptr) {
      known = round.memory.repairs.erase(known);
      continue;
    }
    Repairs& repairs = history_of(round, *node);
    // A drain that a power-down has just taken is put back.
    const bool is_clear = !is_draining(*node->node) && !round.memory.drains.contains(node->name);
    const bool is_other_vm = !node->has_vm() || node->entry->id != repairs.vm;
    if (is_clear && is_other_vm) repairs.is_under_way = repairs.has_given_up = false;
    const bool is_pardoned =
        is_clear && repairs.has_given_up && is_up(*node->node) && !is_hung(round, *node);
    const bool is_old = repairs.times.empty() && is_clear && !repairs.is_under_way;
    known = is_pardoned || is_old ? round.memory.repairs.erase(known) : std::next(known);
  }
}

void add_wishes(Round& round, Wishes& wishes) {
  for (auto& [why, nodes] : wishes.down) {
    round.add(
        Rule::UnhealthyNode,
        why,
        UpdateNodes{.request = NodeRequest::PowerDown, .nodes = std::move(nodes), .reason = {}});
  }
  for (const auto& [why, nodes] : wishes.hung) power_down_hung(round, why, nodes);
  for (auto& [reason, nodes] : wishes.given_up) {
    round.add(
        Rule::UnhealthyNode,
        "new VMs have not mended it",
        UpdateNodes{.request = NodeRequest::Drain, .nodes = std::move(nodes), .reason = reason});
  }
  if (wishes.undrained.empty()) return;
  round.add(
      Rule::UnhealthyNode,
      "the VM that it was drained for is gone",
      UpdateNodes{
          .request = NodeRequest::Undrain, .nodes = std::move(wishes.undrained), .reason = {}});
}

}  // namespace

bool is_to_repair(const Round& round, const NodePicture& node) {
  return node.node != nullptr && is_to_repair(round.nodeset_of(node), *node.node);
}

void unhealthy_node(Round& round) {
  forget_over(round);
  Wishes wishes;
  const bool are_many = are_many_hung(round);
  for (const NodePicture& node : round.picture.nodes()) {
    if (!round.is_free(node.name)) continue;
    if (is_hung(round, node)) replace_hung(round, node, are_many, wishes);
    if (!is_to_repair(round, node)) continue;
    const bool is_off = is_powered_down(*node.node) && !is_powering_down(*node.node) &&
                        !is_power_up_requested(*node.node);
    if (is_off)
      make_whole(round, node, wishes);
    else if (is_up(*node.node) && node.has_vm())
      replace(round, node, wishes);
  }
  add_wishes(round, wishes);
}

}  // namespace flex
