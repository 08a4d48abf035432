// SPDX-License-Identifier: GPL-2.0-or-later
// provision_timeout: a request has waited in Google's queue for longer than the nodeset allows.
// Cancel it and give the job back, to the queue or held.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

namespace flex {

namespace {

void give_up(Round& round,
             const SweptGroup& group,
             const ResizeRequest& request,
             const NodesetConfig& nodeset,
             const std::vector<const Job*>& jobs) {
  const std::string limit = format_slurm_time(nodeset.provision_timeout);
  const std::string why = fmt::format("no VMs within provision_timeout {}", limit);
  const bool hold = nodeset.on_timeout == OnTimeout::Hold;
  cancel_request(round, Rule::ProvisionTimeout, why, {.item = &request, .group = &group});
  std::vector<NodeName> nodes;
  for (const Job* job : jobs) {
    tell(round, Rule::ProvisionTimeout, why, *job, note_provision_timeout(limit, hold));
    std::vector<NodeName> coming = coming_for(round.picture, *job, jobs);
    std::erase_if(coming, [&](const NodeName& name) { return !round.is_free(name); });
    round.claim(coming);
    nodes.insert(nodes.end(), coming.begin(), coming.end());
    // Of a heterogeneous job only the leader can be requeued; it takes the others along. A job that
    // may not be requeued ends when its nodes go.
    if (job->is_batch && job->may_requeue) {
      round.add(Rule::ProvisionTimeout,
                why,
                RequeueJob{.job = job->het_job_id != 0 ? job->het_job_id : job->id,
                           .hold = hold,
                           .nodes = std::move(coming)});
    }
  }
  if (nodes.empty()) return;
  round.add(Rule::ProvisionTimeout,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(nodes),
                        .reason = "flex: " + why});
}

}  // namespace

void provision_timeout(Round& round) {
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state != RequestState::Accepted || !is_our_request(request) ||
          request.nodes.empty() || !round.is_free(group, request))
        continue;
      const NodePicture* node = round.picture.find(request.nodes.front());
      if (node == nullptr || !round.is_free(node->name)) continue;
      const NodesetConfig& nodeset = round.nodeset_of(*node);
      const bool is_over = nodeset.provision_timeout > Seconds{0} &&
                           request.created != TimePoint{} &&
                           round.shot.now - request.created >= nodeset.provision_timeout;
      // Nobody waits for a static node: cancelling would only lose its place in the queue.
      const std::vector<const Job*> jobs = jobs_on(round.picture, request.nodes);
      if (!is_over || jobs.empty() || round.spend(1) == 0) continue;
      give_up(round, group, request, nodeset, jobs);
    }
  }
}

}  // namespace flex
