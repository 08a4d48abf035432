// SPDX-License-Identifier: GPL-2.0-or-later
// unhealthy_node: a health check, prolog or epilog has drained a node for one of repair_reasons:
// its hardware is broken, and another VM has other hardware. When no job is on it the VM goes, and
// the node is whole again: static_node or the next job gets it a new one. A node that fails again
// and again stays drained after max_repairs of a day: then it is not the VM.
#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex {

namespace {

constexpr Seconds kDay{24 * 3600};

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Whether `text` has `part` in it, in any case.
bool mentions(std::string_view text, std::string_view part) {
  const auto is_same = [](char left, char right) { return lower(left) == lower(right); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
}

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

/// What the round wants, by its text so that one call serves many nodes.
struct Wishes {
  std::map<std::string, std::vector<NodeName>> down{};
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
  const Sighting& seen = round.see(Rule::UnhealthyNode, node.name.text + " " + node.entry->id);
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
    const bool is_clear = !is_draining(*node->node);
    const bool is_other_vm = !node->has_vm() || node->entry->id != repairs.vm;
    if (is_clear && is_other_vm) repairs.is_under_way = repairs.has_given_up = false;
    const bool is_pardoned = is_clear && repairs.has_given_up && is_up(*node->node);
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
  const NodesetConfig& nodeset = round.nodeset_of(node);
  if (node.node == nullptr || !is_draining(*node.node) || nodeset.max_repairs == 0) return false;
  const std::string& reason = node.node->reason;
  // What we have written ourselves may quote such a reason.
  if (reason.starts_with(kNotePrefix)) return false;
  return std::any_of(nodeset.repair_reasons.begin(),
                     nodeset.repair_reasons.end(),
                     [&](const std::string& part) { return mentions(reason, part); });
}

void unhealthy_node(Round& round) {
  forget_over(round);
  Wishes wishes;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!is_to_repair(round, node) || !round.is_free(node.name)) continue;
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
