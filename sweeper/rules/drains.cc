// SPDX-License-Identifier: GPL-2.0-or-later
// Part of unbacked_node: slurmctld takes the drain from every node that it powers down, at
// SuspendTime, for an admin or for us, and with idle_on_node_suspend makes a DOWN node IDLE. A node
// that an admin has drained or set DOWN, or that unhealthy_node has given up on, is drained again.
//
// What is to be put back is in the node's extra from the first sight of it on, so that restarts of
// slurmctld and of the sweeper, and a lost memory, cost nothing; and in the memory, for a slurmd
// that writes its own extra. care_for_drain() says how an admin's undrain is told apart.
#include "lib/core/job_note.h"
#include "lib/fleet/node_extra.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <map>
#include <string>

namespace flex {

namespace {

using Nodes = std::map<std::string, std::vector<NodeName>>;  ///< by reason

struct Drains {
  Nodes to_note{};
  Nodes to_restore{};
  std::vector<NodeName> to_revive{};  ///< before they are drained
  std::vector<NodeName> undrained{};
};

std::optional<std::string> remembered_drain(const Round& round, const NodePicture& node) {
  if (auto noted = drain_note(node.node->extra)) return noted;
  const auto known = round.memory.drains.find(node.name);
  if (known == round.memory.drains.end()) return std::nullopt;
  return known->second;
}

std::string up_key(const NodeName& node) {
  return node.text + " drained";
}

std::string lost_key(const NodeName& node) {
  return node.text + " drain lost";
}

void forget_seen(Memory& memory, const std::string& key) {
  memory.sightings.erase(std::string(to_string(Rule::UnbackedNode)) + " " + key);
}

LastLook last_look(const Round& round, const NodePicture& node) {
  const auto is_seen = [&](const std::string& key) {
    const Sighting* const seen = round.memory.find(to_string(Rule::UnbackedNode), key);
    return seen != nullptr && round.shot.now - seen->last <= round.memory.longest_gap;
  };
  if (is_seen(lost_key(node.name))) return LastLook::Lost;
  return is_seen(up_key(node.name)) ? LastLook::DrainedAndUp : LastLook::Nothing;
}

/// Off and DOWN: DRAIN alone would leave it DOWN after an admin's undrain.
bool is_left_down(const Node& node) {
  return is_down(node) && is_powered_down(node) && !is_powering_down(node);
}

void forget(Round& round, const NodePicture& node, const std::string& reason, Drains& drains) {
  forget_drain(round.memory, node.name);
  // Whoever undrains a node that was given up on gives it another chance.
  if (reason.starts_with(kGaveUp)) round.memory.repairs.erase(node.name);
  if (drain_note(node.node->extra)) drains.undrained.push_back(node.name);
}

void care_for(Round& round, const NodePicture& node, Drains& drains) {
  const Node& state = *node.node;
  const NodesetConfig& nodeset = round.nodeset_of(node);
  const auto remembered = remembered_drain(round, node);
  if (!remembered && !is_draining(state) && !is_set_aside(nodeset, state)) return;
  const LastLook last = last_look(round, node);
  if (is_set_aside(nodeset, state) && (is_up(state) || is_powering_down(state)))
    round.see(Rule::UnbackedNode, up_key(node.name));
  // Rounds that do not see everything forget no sighting. This one is over.
  if (is_draining(state)) forget_seen(round.memory, lost_key(node.name));
  switch (care_for_drain(nodeset, state, remembered, last)) {
    case DrainCare::Nothing:
      if (remembered) round.memory.drains[node.name] = *remembered;
      // It is set aside, and the note got lost.
      if (remembered && is_set_aside(nodeset, state) && !drain_note(state.extra))
        drains.to_note[*remembered].push_back(node.name);
      return;
    case DrainCare::Remember:
      round.memory.drains[node.name] = state.reason;
      drains.to_note[state.reason].push_back(node.name);
      return;
    case DrainCare::Wait:
      round.memory.drains[node.name] = *remembered;
      round.see(Rule::UnbackedNode, lost_key(node.name));
      return;
    case DrainCare::Restore:
      round.memory.drains[node.name] = *remembered;
      if (last == LastLook::Lost)
        round.see(Rule::UnbackedNode, lost_key(node.name));  // until it is done
      if (!round.is_free(node.name)) return;
      round.claim(node.name);
      if (is_left_down(state)) drains.to_revive.push_back(node.name);
      drains.to_restore[*remembered].push_back(node.name);
      return;
    case DrainCare::Forget:
      return forget(round, node, *remembered, drains);
  }
}

void add_actions(Round& round, Drains& drains) {
  for (auto& [reason, nodes] : drains.to_note)
    round.add(Rule::NodeNote,
              "a power-down would take its drain away",
              NoteDrain{.nodes = std::move(nodes), .reason = reason});
  if (!drains.undrained.empty())
    round.add(Rule::NodeNote,
              "it was undrained",
              NoteDrain{.nodes = std::move(drains.undrained), .reason = {}});
  if (!drains.to_revive.empty())
    round.add(
        Rule::UnbackedNode,
        "powered down and free, but left DOWN",
        UpdateNodes{
            .request = NodeRequest::Idle, .nodes = std::move(drains.to_revive), .reason = {}});
  for (auto& [reason, nodes] : drains.to_restore) {
    const std::string_view why =
        reason.starts_with(kGaveUp) ? "it was given up on" : "an admin had drained it";
    round.add(
        Rule::UnbackedNode,
        std::string(why),
        UpdateNodes{.request = NodeRequest::Drain, .nodes = std::move(nodes), .reason = reason});
  }
}

}  // namespace

void forget_drain(Memory& memory, const NodeName& node) {
  memory.drains.erase(node);
  // Else what was seen of the drain before would be taken for one that got lost.
  forget_seen(memory, up_key(node));
  forget_seen(memory, lost_key(node));
}

void keep_drains(Round& round, const std::set<std::string>& only) {
  Drains drains;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!only.empty() && !only.contains(round.nodeset_of(node).name)) continue;
    if (node.node == nullptr)
      round.memory.drains.erase(node.name);
    else
      care_for(round, node, drains);
  }
  std::erase_if(round.memory.drains,
                [&](const auto& entry) { return round.config.find(entry.first) == nullptr; });
  add_actions(round, drains);
}

}  // namespace flex
