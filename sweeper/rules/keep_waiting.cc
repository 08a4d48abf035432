// SPDX-License-Identifier: GPL-2.0-or-later
// keep_waiting: Google's queue may take days, slurmctld's ResumeTimeout at most 18 hours before
// Slurm 25.05. POWER_UP on a node that is powering up starts slurmctld's clock anew, and its job
// stays where it is. Never with a VM there: slurmctld ignores the registration of a VM that booted
// before the last POWER_UP.
#include "lib/core/duration.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

bool is_waiting(const Round& round, const NodePicture& node) {
  if (node.node == nullptr || !is_powering_up(*node.node) || is_power_up_requested(*node.node) ||
      is_powered_down(*node.node))
    return false;
  if (node.has_vm() || (node.entry && node.entry->is_leaving())) return false;
  const bool is_unwanted = !node.is_awaited() && is_power_down_requested(*node.node);
  if (node.is_asked_for()) return !is_unwanted;
  // Without a request it waits for the next attempt, or for its turn.
  if (round.memory.retries.contains(node.name)) return true;
  const Sighting* const seen = round.memory.find(to_string(Rule::UnrequestedNode), node.name.text);
  return node.is_awaited() && seen != nullptr && seen->is_twice() && !round.is_stopped(node);
}

/// Whether `part` of `whole` of the node's ResumeTimeout is over.
struct Share {
  int part;
  int whole;
};

std::vector<NodeName> find_near(Round& round, Share share, Seconds& shortest) {
  std::vector<NodeName> near;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !is_powering_up(*node.node)) {
      round.memory.armed.erase(node.name);
      continue;
    }
    if (!node.resume_timeout) continue;
    // A node that was not powering up in the last round has begun since. Without a last round it
    // may have been at it for long: then its clock is wound up at once.
    const auto armed = round.memory.armed.try_emplace(node.name, round.memory.last_round).first;
    const Seconds waited = round.shot.now - armed->second;
    if (!round.is_free(node.name) || !is_waiting(round, node)) continue;
    if (waited < *node.resume_timeout * share.part / share.whole) continue;
    near.push_back(node.name);
    shortest = std::min(shortest, *node.resume_timeout);
  }
  return near;
}

}  // namespace

/// The clock is wound up at half time: cheap, and no long round can make it too late.
void keep_waiting(Round& round) {
  Seconds shortest = Seconds::max();
  std::vector<NodeName> near = find_near(round, {.part = 1, .whole = 2}, shortest);
  if (near.empty()) return;
  round.add(Rule::KeepWaiting,
            fmt::format("still waiting for its VM, and ResumeTimeout ({}) must not end that",
                        format_slurm_time(shortest)),
            UpdateNodes{.request = NodeRequest::PowerUp,
                        .nodes = std::move(near),
                        .reason = {},
                        .only_without_vm = true});
}

/// Later than with open eyes: a VM that has come since the last look has registered by then.
void keep_waiting_blindly(Round& round) {
  Seconds shortest = Seconds::max();
  std::vector<NodeName> near = find_near(round, {.part = 3, .whole = 4}, shortest);
  if (near.empty()) return;
  round.add(Rule::KeepWaiting,
            fmt::format("had no VM when Google was last seen, and ResumeTimeout ({}) is near",
                        format_slurm_time(shortest)),
            UpdateNodes{.request = NodeRequest::PowerUp, .nodes = std::move(near), .reason = {}});
}

}  // namespace flex
