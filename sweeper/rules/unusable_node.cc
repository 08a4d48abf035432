// SPDX-License-Identifier: GPL-2.0-or-later
// unusable_node: a powered-down node that was undrained or resumed, by whomever. slurmctld waits
// for its answer, and after slurmctld's next restart no job gets the node (is_unusable). A
// power-down makes it whole. A drained one stays as it is: nobody wants to use it.
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <chrono>

namespace flex {

namespace {

/// A cure that does not help is tried less and less often.
bool is_cure_due(Round& round, const NodePicture& node) {
  RetryState& cured = round.memory.cured[node.name];
  if (cured.next > round.shot.now) return false;
  cured.next = round.shot.now + pause_after(round.nodeset_of(node).retry, ++cured.attempts);
  return true;
}

/// What was cured an hour ago and needed no second cure is well.
void forget_cured(Round& round) {
  constexpr Seconds kWell = std::chrono::hours{1};
  std::erase_if(round.memory.cured, [&](const auto& entry) {
    return entry.second.next + kWell < round.shot.now || round.config.find(entry.first) == nullptr;
  });
}

}  // namespace

void unusable_node(Round& round) {
  forget_cured(round);
  std::vector<NodeName> nodes;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !is_unusable(*node.node) || !node.jobs.empty() ||
        !round.is_free(node.name) || round.memory.drains.contains(node.name))
      continue;
    if (!round.see(Rule::UnusableNode, node.name.text).is_twice() || !is_cure_due(round, node))
      continue;
    round.claim(node.name);
    nodes.push_back(node.name);
  }
  if (nodes.empty()) return;
  round.add(
      Rule::UnusableNode,
      "undrained while it was off: slurmctld waits for an answer, and may give it to no job",
      UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = std::move(nodes), .reason = {}});
}

}  // namespace flex
