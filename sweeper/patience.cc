// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/patience.h"

#include "lib/fleet/groups.h"

#include <algorithm>

namespace flex {

Patience patience_of(const NodesetConfig& nodeset, const Job& job) {
  const JobWish wish = wish_of(job);
  Patience patience{.limit = nodeset.provision_timeout,
                    .is_own_limit = false,
                    .then = wish.on_timeout.value_or(nodeset.on_timeout)};
  if (wish.wait && (patience.limit == Seconds{0} || *wish.wait < patience.limit)) {
    patience.limit = *wish.wait;
    patience.is_own_limit = true;
  }
  return patience;
}

TimeoutOutcome fate_of(const Job& job, OnTimeout then) {
  if (then == OnTimeout::Cancel) return TimeoutOutcome::Cancelled;
  if (!job.is_batch || !job.may_requeue) return TimeoutOutcome::Ended;
  return then == OnTimeout::Hold ? TimeoutOutcome::Held : TimeoutOutcome::Requeued;
}

TimePoint began_to_wait(const ResizeRequest& request, const Job& job) {
  if (job.start_time == TimePoint{}) return request.created;
  if (request_way(request) != RequestWay{}) return std::min(request.created, job.start_time);
  const bool is_its_own = request_job(request) == job.id;
  return is_its_own ? request.created : std::max(request.created, job.start_time);
}

}  // namespace flex
