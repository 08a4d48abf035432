// SPDX-License-Identifier: GPL-2.0-or-later
// static_node: static nodes are kept populated for ever, whether or not a job waits: at the start,
// after a lease end, after a loss, after an admin's POWER_DOWN. A drained one is the admin's wish.
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

namespace flex {

void static_node(Round& round) {
  std::vector<NodeName> nodes;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!node.is_static || node.node == nullptr || round.is_stopped(node)) continue;
    const Node& state = *node.node;
    if (node.has_vm()) round.memory.raised.erase(node.name);
    const bool is_off = is_powered_down(state) && !is_powering_down(state) &&
                        !is_powering_up(state) && !is_power_up_requested(state) &&
                        !is_power_down_requested(state);
    if (!is_off || is_draining(state) || is_down(state) || !round.is_free(node.name)) continue;
    // The name must be free. An entry without a VM is cleared when it is asked for; one that waits
    // in a request is what the node is powered up for.
    const bool is_waiting = node.entry && node.entry->is_queued() && node.request;
    if (node.entry && !node.entry->is_dead() && !is_waiting) continue;
    if (round.memory.drains.contains(node.name)) continue;
    // One that comes down again and again without ever having a VM is tried less and less often.
    RetryState& raised = round.memory.raised[node.name];
    if (raised.next > round.shot.now) continue;
    raised.next = round.shot.now + pause_after(round.nodeset_of(node).retry, ++raised.attempts);
    round.claim(node.name);
    nodes.push_back(node.name);
  }
  if (nodes.empty()) return;
  round.add(Rule::StaticNode,
            "a static node without a VM",
            UpdateNodes{.request = NodeRequest::PowerUp, .nodes = std::move(nodes), .reason = {}});
}

}  // namespace flex
