// SPDX-License-Identifier: GPL-2.0-or-later
// provision_timeout: a request has waited in Google's queue for longer than the nodeset allows, or
// than its job wants. Cancel it and give the job back: to the queue, held, or cancelled.
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

std::string why_over(const Patience& patience) {
  return why_given_up(patience.limit, patience.is_own_limit);
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
  // A static node is wanted without the job, too.
  std::erase_if(nodes, [&](const NodeName& name) {
    return !round.is_free(name) || round.picture.find(name)->is_static;
  });
  return nodes;
}

/// What becomes of the job itself. Of a heterogeneous job only the leader can be requeued; it takes
/// the others along. `going`: its nodes that are powered down.
void send_away(Round& round,
               const Job& job,
               const Patience& patience,
               const std::vector<NodeName>& going) {
  const JobId whole = job.het_job_id != 0 ? job.het_job_id : job.id;
  const Fate fate = fate_of(job, patience.then);
  const std::vector<NodeName>& nodes = going.empty() ? job.nodes : going;
  if (fate == Fate::Requeued || fate == Fate::Held) {
    round.add(Rule::ProvisionTimeout,
              why_over(patience),
              RequeueJob{.job = whole, .hold = fate == Fate::Held, .nodes = nodes});
  } else if (fate == Fate::Cancelled || going.empty()) {  // else it ends with its nodes
    round.add(Rule::ProvisionTimeout, why_over(patience), CancelJob{.job = whole, .nodes = nodes});
  }
}

/// The parts of a heterogeneous job go together, and its author looks at any of them.
void tell_all_parts(Round& round, const Job& job, const Patience& patience) {
  const std::string note =
      note_provision_timeout(patience.limit, patience.is_own_limit, fate_of(job, patience.then));
  const auto tell_part = [&](const Job& part) {
    if (!part.is_finished && !round.is_told(part.id))
      tell(round, Rule::ProvisionTimeout, why_over(patience), part, note);
  };
  if (job.het_job_id == 0) return tell_part(job);
  for (const Job& part : round.shot.jobs.items) {
    if (part.id == job.id || part.het_job_id == job.het_job_id) tell_part(part);
  }
}

/// It is, or would be, asked for without any job.
bool is_for_static_nodes(const Round& round, const ResizeRequest& request) {
  return request_job(request) == 0 ||
         std::all_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& name) {
           const NodePicture* node = round.picture.find(name);
           return node != nullptr && node->is_static;
         });
}

void give_up(Round& round, const NodesetConfig& nodeset, const std::vector<const Job*>& jobs) {
  std::vector<NodeName> nodes;
  std::string why;
  for (const Job* job : jobs) {
    const Patience patience = patience_of(nodeset, *job);
    why = why_over(patience);
    tell_all_parts(round, *job, patience);
    std::vector<NodeName> coming = nodes_for(round, *job, jobs);
    round.claim(coming);
    nodes.insert(nodes.end(), coming.begin(), coming.end());
    send_away(round, *job, patience, coming);
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
