// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/queue.h"

#include <algorithm>
#include <tuple>

namespace flex {

bool is_before(const Turn& left, const Turn& right) {
  return std::tie(left.is_extra, left.since, left.job, left.nodes.front()) <
         std::tie(right.is_extra, right.since, right.job, right.nodes.front());
}

std::size_t count_active_requests(const Snapshot& shot) {
  std::size_t active = 0;
  for (const SweptGroup& group : shot.groups) {
    active += static_cast<std::size_t>(
        std::count_if(group.requests.begin(), group.requests.end(), [](const ResizeRequest& one) {
          return one.is_active();
        }));
  }
  return active;
}

std::size_t room_for_requests(std::size_t most, const RequestQuota& quota, std::size_t active) {
  const std::size_t allowed = most > active ? most - active : 0;
  if (quota.limit == 0) return allowed;
  const std::size_t freed = quota.limit > active ? quota.limit - active : 0;
  return std::min(allowed, freed + quota.probes);
}

void learn(RequestQuota& quota, const TurnsTaken& turns, std::size_t most) {
  const std::size_t active = turns.active + turns.taken;
  if (turns.refused > 0) {
    // None at all of ours is a limit, too: 0 would mean that there is none.
    quota = {.limit = std::max<std::size_t>(active, 1), .probes = 1};
    return;
  }
  if (quota.limit == 0) return;
  quota.limit = std::max(quota.limit, active);
  if (turns.taken > 0) quota.probes *= 2;
  if (quota.limit >= most || quota.probes >= most) quota = {};
}

}  // namespace flex
