// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/wanted.h"

#include "lib/slurm/node_state.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// One of them is there already, or is being given back. What is only off may be about to come up.
bool are_over(const std::vector<NodeName>& wanted, std::span<const Node> nodes) {
  const std::unordered_set<NodeName> names(wanted.begin(), wanted.end());
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return names.contains(node.name) && (is_up(node) || is_powering_down(node));
  });
}

}  // namespace

bool is_still_wanted(const PlannedRequest& request,
                     std::span<const Job> jobs,
                     std::span<const Node> nodes) {
  if (request.job == 0) return !are_over(request.spec.nodes, nodes);
  const auto job =
      std::find_if(jobs.begin(), jobs.end(), [&](const Job& one) { return one.id == request.job; });
  if (job == jobs.end() || !job->holds_nodes()) return false;
  // Only requests that have a name carry the run that they are for.
  const bool is_named = !request.spec.name.empty();
  if (is_named && job->restart_count != request.key.restart_count) return false;
  const std::unordered_set<NodeName> held(job->nodes.begin(), job->nodes.end());
  return std::all_of(request.spec.nodes.begin(),
                     request.spec.nodes.end(),
                     [&](const NodeName& node) { return held.contains(node); });
}

WantedNow::WantedNow(Scheduler& scheduler, const ResumePlan& plan) : scheduler_(scheduler) {
  std::unordered_set<JobId> known;
  for (const GroupPlan& group : plan.groups) {
    for (const PlannedRequest& request : group.requests) {
      if (request.job == 0) has_jobless_ = true;
      if (request.job != 0 && known.insert(request.job).second) ids_.push_back(request.job);
    }
  }
}

bool WantedNow::operator()(const PlannedRequest& request) {
  look();
  return !is_known_ || is_still_wanted(request, jobs_, nodes_);
}

void WantedNow::look() {
  const auto now = std::chrono::steady_clock::now();
  if (looked_ && now - *looked_ < std::chrono::seconds{1}) return;
  // A slurmctld that does not answer takes ten seconds not to: once is enough.
  if (looked_ && !is_known_) return;
  auto jobs = scheduler_.load_jobs(ids_);
  auto nodes =
      has_jobless_ ? scheduler_.load_nodes() : Result<std::vector<Node>>{std::vector<Node>{}};
  looked_ = std::chrono::steady_clock::now();
  is_known_ = jobs && nodes;
  if (!is_known_) return;
  jobs_ = std::move(*jobs);
  nodes_ = std::move(*nodes);
}

}  // namespace flex
