// SPDX-License-Identifier: GPL-2.0-or-later
// A job that does not wait for its VMs any longer: what becomes of it, of its nodes and of its
// request. Several rules end a wait, all in this way.
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <algorithm>

namespace flex {

std::vector<NodeName> nodes_given_up(const Round& round,
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

void send_away(Round& round,
               Rule rule,
               const std::string& why,
               const Job& job,
               TimeoutOutcome fate,
               const std::vector<NodeName>& going) {
  const JobId whole = job.het_job_id != 0 ? job.het_job_id : job.id;
  const std::vector<NodeName>& nodes = going.empty() ? job.nodes : going;
  if (fate == TimeoutOutcome::Requeued || fate == TimeoutOutcome::Held) {
    round.add(
        rule, why, RequeueJob{.job = whole, .hold = fate == TimeoutOutcome::Held, .nodes = nodes});
  } else if (fate == TimeoutOutcome::Cancelled || going.empty()) {  // else it ends with its nodes
    round.add(rule, why, CancelJob{.job = whole, .nodes = nodes});
  }
}

void tell_all_parts(
    Round& round, Rule rule, const std::string& why, const Job& job, const std::string& note) {
  const auto tell_part = [&](const Job& part) {
    if (!part.is_finished && !round.is_told(part.id)) tell(round, rule, why, part, note);
  };
  if (job.het_job_id == 0) return tell_part(job);
  for (const Job& part : round.shot.jobs.items) {
    if (part.id == job.id || part.het_job_id == job.het_job_id) tell_part(part);
  }
}

bool is_for_static_nodes(const Round& round, const ResizeRequest& request) {
  return request_job(request) == 0 ||
         std::all_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& name) {
           const NodePicture* node = round.picture.find(name);
           return node != nullptr && node->is_static;
         });
}

}  // namespace flex
