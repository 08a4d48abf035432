// SPDX-License-Identifier: GPL-2.0-or-later
// race: a zone of a race has no request while others wait: whoever asked has died before it, or was
// refused there. It is asked for, as flex-resume would have.
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "sweeper/rules.h"

#include <algorithm>
#include <vector>

namespace flex {

namespace {

/// Its requests that no other takes the place of: one for each zone of the race.
std::vector<const ResizeRequest*> lanes_of(const NodePicture& node) {
  std::vector<const ResizeRequest*> lanes;
  for (const Placed<ResizeRequest>& request : node.requests) {
    if (!is_our_request(*request)) continue;
    const RequestWay way = request_way(*request);
    const bool is_followed = std::any_of(
        node.requests.begin(), node.requests.end(), [&](const Placed<ResizeRequest>& other) {
          return is_our_request(*other) && request_way(*other).follows(way);
        });
    if (way.is_race && !is_followed) lanes.push_back(request.item);
  }
  return lanes;
}

}  // namespace

void race(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    const NodesetConfig& nodeset = round.nodeset_of(node);
    if (nodeset.race < 2 || node.has_vm() || !node.is_coming_up() || !node.is_awaited() ||
        !round.is_free(node.name) || round.is_queued(node.name) || round.is_stopped(node))
      continue;
    const std::vector<const ResizeRequest*> lanes = lanes_of(node);
    // What a request is for is asked for together.
    if (lanes.empty() || lanes.front()->nodes.front() != node.name) continue;
    const RequestWay way = request_way(*lanes.front());
    if (lanes.size() >= routes_of(nodeset, way.step).size() || !is_due(round, node)) continue;
    // One that Google gave up on is not asked for again at once.
    const Sighting& seen =
        round.see(Rule::UnrequestedNode, node.name.text + " race " + key_of(*lanes.front()));
    if (!seen.is_twice() || seen.age() < nodeset.retry.base) continue;
    Turn turn = make_turn(round,
                          Rule::UnrequestedNode,
                          "a zone of its race has no request",
                          lanes.front()->nodes,
                          lanes.front()->created);
    turn.options = {.attempt = way.attempt,
                    .step = way.step,
                    .renewed = way.renewed,
                    .failures = way.failures,
                    .is_second = true,
                    .only_missing = true};
    // It must not be in the way of one that has none.
    turn.is_extra = true;
    if (!is_shut_out(round, turn)) round.enqueue(std::move(turn));
  }
}

}  // namespace flex
