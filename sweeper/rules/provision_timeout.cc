// SPDX-License-Identifier: GPL-2.0-or-later
// provision_timeout: a request has waited in Google's queue for longer than the nodeset allows.
// Cancel it and give the job back, to the queue or held.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

std::string why_over(const NodesetConfig& nodeset) {
  return fmt::format("no VMs within provision_timeout {}",
                     format_slurm_time(nodeset.provision_timeout));
}

/// What came for these jobs: nodes on their way, and those that are up already and of no use
/// without the others.
std::vector<NodeName> nodes_for(const Round& round,
                                const Job& job,
                                const std::vector<const Job*>& jobs) {
  std::vector<NodeName> nodes = coming_for(round.picture, job, jobs);
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = round.picture.find(name);
    if (node != nullptr && node->has_vm() && !node->is_coming_up() && !node->is_static &&
        node->jobs.size() == 1)
      nodes.push_back(name);
  }
  std::erase_if(nodes, [&](const NodeName& name) { return !round.is_free(name); });
  return nodes;
}

void give_up(Round& round, const NodesetConfig& nodeset, const std::vector<const Job*>& jobs) {
  const std::string limit = format_slurm_time(nodeset.provision_timeout);
  const std::string why = why_over(nodeset);
  const bool hold = nodeset.on_timeout == OnTimeout::Hold;
  std::vector<NodeName> nodes;
  for (const Job* job : jobs) {
    tell(round, Rule::ProvisionTimeout, why, *job, note_provision_timeout(limit, hold));
    std::vector<NodeName> coming = nodes_for(round, *job, jobs);
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

/// A request that was renewed, or that follows another, began to wait with its job.
TimePoint began_to_wait(const ResizeRequest& request, const std::vector<const Job*>& jobs) {
  TimePoint since = request.created;
  if (request_way(request) == RequestWay{}) return since;
  for (const Job* job : jobs) {
    if (job->start_time != TimePoint{}) since = std::min(since, job->start_time);
  }
  return since;
}

bool is_over(const NodesetConfig& nodeset, Seconds waited) {
  return nodeset.provision_timeout > Seconds{0} && waited >= nodeset.provision_timeout;
}

/// VMs that are asked for without a request, or that cannot be asked for now.
void look_at_jobs(Round& round) {
  for (const Job& job : round.shot.jobs.items) {
    if (!job.holds_nodes() || !job.is_configuring) continue;
    const NodePicture* waiting = nullptr;
    for (const NodeName& name : job.nodes) {
      const NodePicture* node = round.picture.find(name);
      if (node == nullptr || !node->is_coming_up() || node->has_vm()) continue;
      if (node->request) {
        waiting = nullptr;
        break;
      }
      waiting = node;
    }
    if (waiting == nullptr || !round.is_free(waiting->name)) continue;
    const NodesetConfig& nodeset = round.nodeset_of(*waiting);
    const Sighting& seen = round.see(Rule::ProvisionTimeout, fmt::format("job {}", job.id));
    const TimePoint since = waits_since(round, &job, seen.first);
    if (seen.is_twice() && is_over(nodeset, round.shot.now - since))
      give_up(round, nodeset, {&job});
  }
}

}  // namespace

void provision_timeout(Round& round) {
  for (const Placed<ResizeRequest>& request : queued_requests(round)) {
    const NodePicture* node = round.picture.find(request->nodes.front());
    if (node == nullptr || !round.is_free(node->name)) continue;
    const NodesetConfig& nodeset = round.nodeset_of(*node);
    const std::vector<const Job*> jobs = jobs_on(round.picture, request->nodes);
    // Nobody waits for a static node: cancelling would only lose its place in the queue.
    if (request->created == TimePoint{} || jobs.empty() ||
        !is_over(nodeset, round.shot.now - began_to_wait(*request, jobs)) || round.spend(1) == 0)
      continue;
    cancel_request(round, Rule::ProvisionTimeout, why_over(nodeset), request);
    give_up(round, nodeset, jobs);
  }
  look_at_jobs(round);
}

}  // namespace flex
