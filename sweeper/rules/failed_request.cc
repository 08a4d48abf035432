// SPDX-License-Identifier: GPL-2.0-or-later
// failed_request: Google gave up on a request. Passing trouble: the next attempt after a pause.
// Otherwise the job is given back with the reason. The failed request is deleted either way.
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "lib/gce/errors.h"
#include "resume/apply.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

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
    if (node == nullptr || !is_unserved(*node) || !round.is_free(name)) continue;
    const bool is_latest = node->failed && node->failed->name == request.name;
    const bool is_wanted = !node->jobs.empty() || node->is_static || request_job(request) == 0;
    if (is_latest && is_wanted) waiting.push_back(name);
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
  for (const Job* job : jobs) {
    Demand::JobNodes wanted{.job = *job, .nodes = {}};
    for (const NodeName& name : job->nodes) {
      const NodePicture* node = round.picture.find(name);
      if (node != nullptr && node->is_coming_up()) wanted.nodes.push_back(name);
    }
    round.claim(wanted.nodes);
    round.add(Rule::FailedRequest,
              fmt::format("the request failed for good: {}", error.what),
              GiveJobBack{.job = std::move(wanted), .error = error});
  }
  if (!jobs.empty()) return;
  round.claim(nodes);
  round.add(Rule::FailedRequest,
            fmt::format("the request failed for good: {}", error.what),
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = nodes,
                        .reason = fmt::format("flex: {}", error.what)});
}

void retry_or_give_back(Round& round,
                        const SweptGroup& group,
                        const ResizeRequest& request,
                        const std::vector<NodeName>& waiting) {
  const Error error = error_of(request);
  const std::vector<const Job*> jobs = jobs_on(round.picture, waiting);
  const NodePicture& first = *round.picture.find(waiting.front());
  const RetryConfig& policy = round.nodeset_of(first).retry;
  const std::string key = retry_key(jobs.empty() ? 0 : jobs.front()->id, first.name);
  RetryState& retry = round.memory.retries[key];
  const std::uint32_t failures = std::max(retry.attempts, request_attempt(request));
  // A static node is kept for ever.
  const bool is_exhausted = policy.limit > 0 && failures >= policy.limit && !first.is_static;
  if (is_permanent(error) || is_exhausted) {
    Error last = error;
    if (!is_permanent(error)) {
      last = {ErrorKind::Invalid,
              fmt::format("{} attempts failed, the last with: {}", failures, error.what),
              error.code};
    }
    round.memory.retries.erase(key);
    give_back(round, jobs, waiting, last);
    return remove(round, group, request, "failed, and its job is given back");
  }
  if (retry.next == TimePoint{} || retry.attempts < failures) {
    retry = {.attempts = failures,
             .next = round.shot.now + retry_delay(policy, failures),
             .why = error.what};
  }
  round.claim(waiting);
  if (round.shot.now < retry.next || round.is_stopped(first)) return;
  // The next request tells its number in its description; this one's name stays taken until then.
  retry.attempts = failures + 1;
  retry.next = {};
  ask_for(round,
          Rule::FailedRequest,
          fmt::format("attempt {} failed: {}", failures, error.what),
          waiting);
  remove(round, group, request, fmt::format("failed ({}), the next attempt follows", error.what));
}

}  // namespace

void failed_request(Round& round) {
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state != RequestState::Failed || !is_our_request(request)) continue;
      const std::vector<NodeName> waiting = waiting_for(round, request);
      if (!waiting.empty()) {
        retry_or_give_back(round, group, request, waiting);
        continue;
      }
      const Sighting& seen = round.see(Rule::FailedRequest, key_of(request));
      if (seen.is_twice())
        remove(round, group, request, "failed, and nobody waits for it: " + error_of(request).what);
    }
  }
}

}  // namespace flex
