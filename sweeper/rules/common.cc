// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace flex {

std::string key_of(const ResizeRequest& request) {
  return request.group.text + "/" + request.name.text;
}

std::vector<Placed<ResizeRequest>> queued_requests(const Round& round) {
  std::vector<Placed<ResizeRequest>> queued;
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state == RequestState::Accepted && is_our_request(request) &&
          !request.nodes.empty() && round.is_free(group, request))
        queued.push_back({.item = &request, .group = &group});
    }
  }
  return queued;
}

Seconds pause_after(const RetryConfig& retry, std::uint32_t failures) {
  Seconds delay = retry.base;
  for (std::uint32_t i = 1; i < failures && delay < retry.max; ++i) delay *= 2;
  return std::min(delay, retry.max);
}

bool is_due(const Round& round, const NodePicture& node) {
  const auto retry = round.memory.retries.find(node.name);
  return retry == round.memory.retries.end() || retry->second.next <= round.shot.now;
}

std::vector<const Job*> jobs_on(const Picture& picture, const std::vector<NodeName>& nodes) {
  std::vector<const Job*> jobs;
  std::set<JobId> seen;
  for (const NodeName& name : nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr) continue;
    for (const Job* job : node->jobs) {
      if (seen.insert(job->id).second) jobs.push_back(job);
    }
  }
  return jobs;
}

std::vector<NodeName> coming_for(const Picture& picture,
                                 const Job& job,
                                 const std::vector<const Job*>& jobs) {
  std::vector<NodeName> coming;
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr || !node->is_coming_up()) continue;
    const bool is_shared = std::any_of(node->jobs.begin(), node->jobs.end(), [&](const Job* on) {
      return std::find(jobs.begin(), jobs.end(), on) == jobs.end();
    });
    if (!is_shared) coming.push_back(name);
  }
  return coming;
}

TimePoint waits_since(const Round& round, const Job* job, TimePoint otherwise) {
  const bool is_known =
      job != nullptr && job->start_time != TimePoint{} && job->start_time <= round.shot.now;
  return is_known ? job->start_time : otherwise;
}

Turn make_turn(const Round& round,
               Rule rule,
               std::string why,
               std::vector<NodeName> nodes,
               TimePoint first_seen) {
  // A request may name nodes that the config no longer has.
  std::erase_if(nodes, [&](const NodeName& name) { return round.config.find(name) == nullptr; });
  const NodePicture& node = *round.picture.find(nodes.front());
  const Job* const job = node.jobs.empty() ? nullptr : node.jobs.front();
  Turn turn{.rule = rule, .why = std::move(why), .nodes = std::move(nodes)};
  turn.job = job == nullptr ? 0 : job->id;
  turn.since = waits_since(round, job, first_seen);
  return turn;
}

std::string waiter_of(const Round& round, const NodePicture& node) {
  if (node.jobs.empty()) return node.name.text;
  return fmt::format("{} job {}", round.nodeset_of(node).name, node.jobs.front()->id);
}

std::size_t stockout_step(const Round& round, const NodePicture& node) {
  const auto found = round.memory.stockouts.find(waiter_of(round, node));
  return found == round.memory.stockouts.end() ? 0 : found->second.step;
}

bool may_still_come(Round& round, const NodePicture& node) {
  constexpr Seconds kPatience{600};
  if (!node.is_bulk_pending) return false;
  return round.see(Rule::UnrequestedNode, node.name.text + " bulk").age() < kPatience;
}

bool is_unserved(const NodePicture& node) {
  return node.node != nullptr && is_powering_up(*node.node) && node.is_coming_up() &&
         !node.has_vm() && !node.is_asked_for();
}

namespace {

/// Jobs and nodes in the order of `nodes`.
void sort_demand(Demand& demand, const std::vector<NodeName>& nodes) {
  std::unordered_map<NodeName, std::size_t> place;
  for (const NodeName& node : nodes) place.emplace(node, place.size());
  std::stable_sort(
      demand.jobs.begin(), demand.jobs.end(), [&](const auto& left, const auto& right) {
        return place.at(left.nodes.front()) < place.at(right.nodes.front());
      });
  std::stable_sort(
      demand.jobless.begin(), demand.jobless.end(), [&](const auto& left, const auto& right) {
        return place.at(left) < place.at(right);
      });
}

}  // namespace

AskForNodes plan_for(const Round& round,
                     const std::vector<NodeName>& nodes,
                     const PlanOptions& options) {
  std::set<std::size_t> nodesets;
  for (const NodeName& name : nodes) nodesets.insert(round.config.find(name)->nodeset);
  AskForNodes ask;
  ask.demand = resolve_demand(
      {.config = round.config, .nodes = nodes, .request = nullptr, .jobs = &round.shot.jobs.items});
  sort_demand(ask.demand, nodes);
  ask.plan = plan_resume(round.config,
                         round.shot.cluster,
                         ask.demand,
                         round.picture.fleet_of({nodesets.begin(), nodesets.end()}),
                         options);
  return ask;
}

void cancel_request(Round& round,
                    Rule rule,
                    const std::string& why,
                    const Placed<ResizeRequest>& request) {
  round.claim_request(*request.group, *request);
  round.add(rule,
            why,
            CancelRequest{.group = request.group->group.name,
                          .request = request->name,
                          .nodes = request->nodes,
                          .job = request_job(*request)});
}

void tell(Round& round, Rule rule, const std::string& why, const Job& job, std::string_view text) {
  std::string comment = with_note(job.admin_comment, text);
  if (comment == job.admin_comment) return;
  round.add(rule, why, TellJob{.job = job.id, .comment = std::move(comment)});
}

std::size_t delete_instances(Round& round,
                             Rule rule,
                             const std::string& why,
                             const MigName& group,
                             const std::vector<Instance>& doomed,
                             bool keep_serial_log) {
  const std::size_t granted = round.spend(doomed.size());
  for (std::size_t at = 0; at < granted; at += kMaxRequestSize) {
    const auto begin = doomed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        doomed.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMaxRequestSize, granted));
    round.add(rule,
              why,
              DeleteInstances{
                  .group = group, .instances = {begin, end}, .keep_serial_log = keep_serial_log});
  }
  return granted;
}

}  // namespace flex
