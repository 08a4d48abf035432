// SPDX-License-Identifier: GPL-2.0-or-later
// provision_timeout: a request has waited in Google's queue for longer than the nodeset allows, or
// than its job wants. Cancel it and give the job back: to the queue, held, or cancelled.
#include "lib/core/job_note.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

namespace flex {

namespace {

std::string why_over(const Patience& patience) {
  return why_given_up(patience.limit, patience.is_own_limit);
}

void give_up(Round& round, const NodesetConfig& nodeset, const std::vector<const Job*>& jobs) {
  std::vector<NodeName> nodes;
  std::string why;
  for (const Job* job : jobs) {
    const Patience patience = patience_of(nodeset, *job);
    why = why_over(patience);
    const TimeoutOutcome fate = fate_of(*job, patience.then);
    tell_all_parts(round,
                   Rule::ProvisionTimeout,
                   why,
                   *job,
                   note_provision_timeout(patience.limit, patience.is_own_limit, fate));
    const std::vector<NodeName> coming = nodes_given_up(round, *job, jobs);
    round.claim(coming);
    nodes.insert(nodes.end(), coming.begin(), coming.end());
    send_away(round, Rule::ProvisionTimeout, why, *job, fate, coming);
  }
  if (nodes.empty()) return;
  round.add(Rule::ProvisionTimeout,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(nodes),
                        .reason = "flex: " + why});
}

/// Those who wait for the request no longer.
std::vector<const Job*> impatient(const Round& round,
                                  const NodesetConfig& nodeset,
                                  const ResizeRequest& request,
                                  std::vector<const Job*> jobs) {
  std::erase_if(jobs, [&](const Job* job) {
    return round.is_told(job->id) ||
           !patience_of(nodeset, *job).is_over(round.shot.now - began_to_wait(request, *job));
  });
  return jobs;
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
    const Sighting& seen =
        round.see(Rule::ProvisionTimeout, fmt::format("job {} {}", job.id, job.restart_count));
    const TimePoint since = waits_since(round, &job, seen.first);
    if (seen.is_twice() && patience_of(nodeset, job).is_over(round.shot.now - since))
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
    if (request->created == TimePoint{}) continue;
    const std::vector<const Job*> leaving = impatient(round, nodeset, *request, jobs);
    if (leaving.empty()) continue;
    // Who shares a node with others leaves them the request; cancelling that of a static node would
    // only lose its place in the queue.
    if (leaving.size() == jobs.size() && !is_for_static_nodes(round, *request)) {
      if (round.spend(1) == 0) continue;
      const std::string why = why_over(patience_of(nodeset, *leaving.front()));
      cancel_request(round, Rule::ProvisionTimeout, why, request);
    }
    give_up(round, nodeset, leaving);
  }
  look_at_jobs(round);
}

}  // namespace flex
