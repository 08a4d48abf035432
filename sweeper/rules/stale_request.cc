// SPDX-License-Identifier: GPL-2.0-or-later
// stale_request: a request waits in Google's queue for nodes that nobody wants any more (scancel,
// requeue), or that are not exactly what the job on them needs (lib/fleet/fit.h). Cancel it, and
// give back the nodes that are left powering up for nobody: slurmctld never does that by itself.
// What a job then lacks is asked for as a whole (unrequested_node).
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

/// A job is on the node, or it is wanted without one.
bool is_wanted(const Round& round, const NodePicture& node, const ResizeRequest& request) {
  if (!node.jobs.empty()) return true;
  if (node.is_static) return node.wants_vm() || node.is_awaited();
  return request_job(request) == 0 && node.wants_vm() && !comes_for_nobody(round, node);
}

/// Neither Google nor its description says which nodes it is for: its job must do.
std::string why_unnamed_stale(const Round& round, const ResizeRequest& request) {
  const JobId id = request_job(request);
  const Job* job = round.picture.find_job(id);
  const bool is_wanted = id == 0 || (job != nullptr && job->holds_nodes());
  return is_wanted ? std::string{} : fmt::format("job {} no longer waits", id);
}

/// Empty if all of its nodes are wanted, and as it asks for them; else why it is stale. One that
/// only ends too early is made anew (resubmit).
std::string why_stale(const Round& round, const ResizeRequest& request) {
  if (request.nodes.empty()) return why_unnamed_stale(round, request);
  std::size_t unwanted = 0;
  for (const NodeName& name : request.nodes) {
    const NodePicture* node = round.picture.find(name);
    const bool is_kept = node == nullptr ? round.picture.is_in_use_elsewhere(name)
                                         : is_wanted(round, *node, request);
    if (!is_kept) ++unwanted;
  }
  if (unwanted == 0) {
    const Judgement judgement = judge(round.config, PictureFacts{round.picture}, request);
    return judgement.fit == Fit::Wrong ? judgement.why : std::string{};
  }
  const JobId job = request_job(request);
  if (job == 0) return "nobody wants its nodes any more";
  if (unwanted < request.nodes.size())
    return fmt::format(
        "job {} no longer wants {} of its {} nodes", job, unwanted, request.nodes.size());
  return fmt::format("job {} no longer waits for its nodes", job);
}

/// slurmctld is about to call flex-resume for one of its nodes: without the request a new one would
/// be made, for nobody.
bool is_waking(const Round& round, const ResizeRequest& request) {
  return std::any_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& name) {
    const NodePicture* node = round.picture.find(name);
    return node != nullptr && node->node != nullptr && node->jobs.empty() && !node->is_static &&
           is_about_to_wake(*node->node);
  });
}

/// Cancels it; its nodes that are left powering up for nobody go to `unwanted`.
void cancel(Round& round,
            const SweptGroup& group,
            const ResizeRequest& request,
            const std::string& why,
            std::vector<NodeName>& unwanted) {
  cancel_request(round, Rule::StaleRequest, why, {.item = &request, .group = &group});
  for (const NodeName& name : request.nodes) {
    const NodePicture* node = round.picture.find(name);
    if (node == nullptr || node->node == nullptr || !round.is_free(name)) continue;
    round.claim(name);
    if (node->jobs.empty() && !node->is_static && node->is_coming_up()) unwanted.push_back(name);
  }
}

/// What waits one by one, without a request: giving the node back makes flex-suspend take it out of
/// the queue. Whether an admin wanted it or a job that was cancelled, nobody can say.
void find_alone(Round& round, std::vector<NodeName>& unwanted) {
  for (const NodePicture& node : round.picture.nodes()) {
    if (!node.is_queued_alone() || !node.is_coming_up() || node.is_awaited() ||
        !round.is_free(node.name) || is_power_down_requested(*node.node))
      continue;
    const Sighting& seen = round.see(
        Rule::StaleRequest, node.name.text + " alone in " + key_of(node.alone.back().group->group));
    if (!seen.is_twice() || seen.age() < round.config.sweeper.orphan_grace) continue;
    round.claim(node.name);
    unwanted.push_back(node.name);
  }
}

}  // namespace

void stale_request(Round& round) {
  std::vector<NodeName> unwanted;
  find_alone(round, unwanted);
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (!request.is_active() || !is_our_request(request) || !round.is_free(group, request))
        continue;
      const std::string why = why_stale(round, request);
      if (why.empty()) continue;
      const Sighting& seen = round.see(Rule::StaleRequest, key_of(request));
      // Only a queued one can be cancelled; one that is being created or served is looked at again.
      if (!seen.is_twice() || request.state != RequestState::Accepted ||
          is_waking(round, request) || round.spend(1) == 0)
        continue;
      cancel(round, group, request, why, unwanted);
    }
  }
  if (unwanted.empty()) return;
  round.add(Rule::StaleRequest,
            "powering up for a request that is cancelled",
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(unwanted),
                        .reason = "flex: the job that asked for this node is gone"});
}

}  // namespace flex
