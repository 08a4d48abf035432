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

/// The clock is wound up at half time: cheap, and neither an outage nor a long round can make it
/// too late.
Seconds wind_up_after(Seconds timeout) {
  return timeout / 2;
}

bool is_waiting(const Round& round, const NodePicture& node) {
  if (node.node == nullptr || !is_powering_up(*node.node) || is_power_up_requested(*node.node) ||
      is_powered_down(*node.node))
    return false;
  if (node.has_vm() || (node.entry && node.entry->is_leaving())) return false;
  // Without a request it waits for the next attempt, or for the sweeper to ask.
  const bool is_unwanted = !node.is_awaited() && is_power_down_requested(*node.node);
  return (node.request && !is_unwanted) || round.memory.retries.contains(node.name);
}

}  // namespace

void keep_waiting(Round& round) {
  std::vector<NodeName> near;
  Seconds shortest = Seconds::max();
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
    if (waited < wind_up_after(*node.resume_timeout)) continue;
    near.push_back(node.name);
    shortest = std::min(shortest, *node.resume_timeout);
  }
  if (near.empty()) return;
  round.add(Rule::KeepWaiting,
            fmt::format("still waiting for its VM, and ResumeTimeout ({}) must not end that",
                        format_slurm_time(shortest)),
            UpdateNodes{.request = NodeRequest::PowerUp,
                        .nodes = std::move(near),
                        .reason = {},
                        .only_without_vm = true});
}

}  // namespace flex
