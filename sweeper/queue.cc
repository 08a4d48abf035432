// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/queue.h"

#include <algorithm>

namespace flex {

PendingAsk to_ask(const Turn& turn) {
  return {.job = turn.job,
          .first = turn.nodes.front(),
          .since = turn.since,
          .is_ready = turn.is_ready,
          .is_extra = turn.is_extra};
}

bool is_before(const Turn& left, const Turn& right) {
  return is_before(to_ask(left), to_ask(right));
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

}  // namespace flex
