// SPDX-License-Identifier: GPL-2.0-or-later
// finished_request: a request that has been served, has failed or was cancelled stays listed for
// two weeks. After a while nobody looks at it any more. Deleting it does not touch its VMs.
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

namespace flex {

void finished_request(Round& round) {
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      const bool is_finished = request.state == RequestState::Succeeded ||
                               request.state == RequestState::Failed ||
                               request.state == RequestState::Cancelled;
      if (!is_finished || !is_our_request(request) || !round.is_free(group, request)) continue;
      const Sighting& seen = round.see(Rule::FinishedRequest, key_of(request));
      if (!seen.is_twice() || seen.age() < round.config.sweeper.finished_request_grace) continue;
      if (round.spend(1) == 0) return;
      round.claim_request(group, request);
      round.add(Rule::FinishedRequest,
                "finished, and kept for long enough",
                DeleteRequest{.group = group.group.name, .request = request.name});
    }
  }
}

}  // namespace flex
