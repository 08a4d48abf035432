// SPDX-License-Identifier: GPL-2.0-or-later
// failed_request: Google gave up on a request. Passing trouble: the next attempt after a pause.
// Otherwise the job is given back with the reason. The failed request is deleted when nobody waits
// for it any more.
#include "lib/fleet/groups.h"
#include "lib/fleet/queue.h"
#include "lib/gce/errors.h"
#include "lib/slurm/node_state.h"
#include "resume/apply.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace flex {

namespace {

Error error_of(const ResizeRequest& request) {
  if (request.error) return to_error(*request.error);
  return {ErrorKind::Retry, "Google ended the request without saying why", "NO_REASON"};
}

/// The nodes that still wait for what this request was to bring.
std::vector<NodeName> waiting_for(const Round& round, const ResizeRequest& request) {
  std::vector<NodeName> waiting;
  for (const NodeName& name : request.nodes) {
    const NodePicture* node = round.picture.find(name);
    if (node == nullptr || !is_unserved(*node) || !round.is_free(name) || round.is_queued(name))
      continue;
    const bool is_latest = node->failed && node->failed->name == request.name;
    // An admin powered it up by hand.
    const bool is_by_hand = request_job(request) == 0 && !is_power_down_requested(*node->node);
    if (is_latest && (node->is_awaited() || is_by_hand)) waiting.push_back(name);
  }
  return waiting;
}

void remove(Round& round,
            const SweptGroup& group,
            const ResizeRequest& request,
            const std::string& why) {
  if (round.spend(1) == 0) return;
  round.claim_request(group, request);
  round.add(
      Rule::FailedRequest, why, DeleteRequest{.group = group.group.name, .request = request.name});
}

void give_back(Round& round,
               const std::vector<const Job*>& jobs,
               const std::vector<NodeName>& nodes,
               const Error& error) {
  const std::string why = fmt::format("the request failed for good: {}", error.what);
  for (const Job* job : jobs) {
    Demand::JobNodes wanted{.job = *job, .nodes = coming_for(round.picture, *job, jobs)};
    round.claim(wanted.nodes);
    round.add(Rule::FailedRequest, why, GiveJobBack{.job = std::move(wanted), .error = error});
  }
  round.claim(nodes);
  if (!jobs.empty()) return;
  round.add(Rule::FailedRequest,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = nodes,
                        .reason = fmt::format("flex: {}", error.what)});
}

/// Nothing if another attempt may help, else what the job is told.
std::optional<Error> why_give_up(const Round& round,
                                 const NodePicture& node,
                                 const Error& error,
                                 std::uint32_t failures) {
  if (is_permanent(error)) return error;
  // It waits for its turn.
  if (is_active_requests_quota(error)) return std::nullopt;
  const NodesetConfig& nodeset = round.nodeset_of(node);
  const std::size_t limit = nodeset.retry.limit;
  // A static node is kept for ever; and there may be something else to try later.
  const bool has_more = stockout_step(round, node) < nodeset.on_stockout.size();
  if (limit == 0 || failures < limit || node.is_static || has_more) return std::nullopt;
  return Error{ErrorKind::Invalid,
               fmt::format("{} attempts failed, the last with: {}", failures, error.what),
               error.code};
}

/// What the zone can never serve is tried elsewhere (stockout), as long as there is something else.
bool is_stepped_over(const Round& round, const NodePicture& node, const Error& error) {
  return is_of_zone(error) &&
         stockout_step(round, node) < round.nodeset_of(node).on_stockout.size();
}

void retry_or_give_back(Round& round,
                        const SweptGroup& group,
                        const ResizeRequest& request,
                        const std::vector<NodeName>& waiting) {
  const Error error = error_of(request);
  const NodePicture& first = *round.picture.find(waiting.front());
  // The next step has it.
  if (is_of_zone(error) && request_way(request).step < stockout_step(round, first)) return;
  const RetryConfig& policy = round.nodeset_of(first).retry;
  RetryState& retry = round.memory.retries[first.name];
  retry.job = first.jobs.empty() ? 0 : first.jobs.front()->id;
  const RequestWay way = request_way(request);
  const std::uint32_t failures = std::max(retry.attempts, way.failures + 1);
  if (const auto last = why_give_up(round, first, error, failures)) {
    round.memory.retries.erase(first.name);
    give_back(round, jobs_on(round.picture, waiting), waiting, *last);
    return remove(round, group, request, "failed, and its job is given back");
  }
  if (retry.attempts < failures) {
    retry.attempts = failures;
    retry.next = round.shot.now + pause_after(policy, failures);
    retry.why = error.what;
  }
  if (is_active_requests_quota(error)) retry.next = round.shot.now;
  Turn turn = make_turn(round,
                        Rule::FailedRequest,
                        fmt::format("attempt {} failed: {}", failures, error.what),
                        waiting,
                        request.created);
  turn.options = {.attempt = way.attempt + 1,
                  .step = way.step,
                  .renewed = way.renewed,
                  .failures = failures,
                  .shorter = way.shorter};
  turn.is_ready = round.shot.now >= retry.next && !round.is_stopped(first);
  round.enqueue(std::move(turn));
}

/// It was one of several for nodes that still wait: a zone of a race, a step, a renewal.
bool is_beside_others(const Round& round, const ResizeRequest& request) {
  const NodePicture* const node =
      request.nodes.empty() ? nullptr : round.picture.find(request.nodes.front());
  if (node == nullptr || !node->is_coming_up() || node->has_vm() || !node->is_asked_for())
    return false;
  const JobId job = request_job(request);
  return job == 0 || std::any_of(node->jobs.begin(), node->jobs.end(), [&](const Job* on) {
           return on->id == job;
         });
}

void shut(Round& round, const ResizeRequest& request) {
  const NodePicture& node = *round.picture.find(request.nodes.front());
  const bool has_job = !node.jobs.empty() && !node.is_static;
  shut_failed(round.memory,
              {.waiter = waiter_of(round, node),
               .restart_count = has_job ? node.jobs.front()->restart_count : 0,
               .group = request.group,
               .policy = round.nodeset_of(node).retry,
               .error = error_of(request)},
              round.shot.now);
}

/// What waits one by one has no request that could fail: its entry says what is wrong.
void give_back_alone(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    if (!node.is_queued_alone() || node.request || !round.is_free(node.name)) continue;
    const auto& last = node.alone.back()->last_error;
    if (!last || node.jobs.empty()) continue;
    const Error error = to_error(*last);
    if (!is_permanent(error) || is_stepped_over(round, node, error)) continue;
    const std::string key = fmt::format(
        "{} alone in {}", waiter_of(round, node), key_of(node.alone.back().group->group));
    if (!round.see(Rule::FailedRequest, node.name.text + " " + key).is_twice()) continue;
    give_back(round, node.jobs, {node.name}, error);
  }
}

}  // namespace

void failed_request(Round& round) {
  give_back_alone(round);
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state != RequestState::Failed || !is_our_request(request)) continue;
      const std::vector<NodeName> waiting = waiting_for(round, request);
      if (!waiting.empty()) {
        retry_or_give_back(round, group, request, with_rest_of_job(round, waiting));
        continue;
      }
      const bool has_others = is_beside_others(round, request);
      const Sighting& seen = round.see(Rule::FailedRequest, key_of(request));
      if (has_others && seen.count == 1) shut(round, request);
      if (seen.is_twice())
        remove(round,
               group,
               request,
               fmt::format("failed, and {}: {}",
                           has_others ? "another request goes on" : "nobody waits for it",
                           error_of(request).what));
    }
  }
}

}  // namespace flex
