// SPDX-License-Identifier: GPL-2.0-or-later
// resubmit: a request that has waited for longer than resubmit_after is renewed: Google sometimes
// serves a new one at once. The old one keeps its place until the new one is in the queue
// (surplus_request).
#include "lib/core/duration.h"
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flex {

namespace {

bool is_followed(const NodePicture& node, const ResizeRequest& request) {
  const RequestWay way = request_way(request);
  return std::any_of(
      node.requests.begin(), node.requests.end(), [&](const Placed<ResizeRequest>& other) {
        return is_our_request(*other) && request_way(*other).follows(way);
      });
}

/// All of them, and no other rule has taken one of them up.
bool are_waiting(const Round& round, const std::vector<NodeName>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeName& name) {
    const NodePicture* node = round.picture.find(name);
    return node != nullptr && node->is_awaited() && !round.is_stopped(*node) &&
           round.is_free(name) && !round.is_queued(name);
  });
}

}  // namespace

void resubmit(Round& round) {
  for (const Placed<ResizeRequest>& request : queued_requests(round)) {
    if (!are_waiting(round, request->nodes)) continue;
    const NodePicture& node = *round.picture.find(request->nodes.front());
    if (is_followed(node, *request) || !is_due(round, node)) continue;
    const Seconds limit = round.nodeset_of(node).resubmit_after;
    if (limit == Seconds{0} || request->created == TimePoint{} ||
        round.shot.now - request->created < limit)
      continue;
    const RequestWay way = request_way(*request);
    Turn turn = make_turn(round,
                          Rule::Resubmit,
                          fmt::format("its request has waited for more than resubmit_after {}",
                                      format_slurm_time(limit)),
                          request->nodes,
                          request->created);
    turn.options = {.attempt = way.attempt + 1,
                    .step = way.step,
                    .renewed = way.renewed + 1,
                    .is_second = true};
    // A second request for the same nodes must not be in the way of one that has none.
    turn.is_extra = true;
    round.enqueue(std::move(turn));
  }
}

}  // namespace flex
