// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/events.h"

#include "lib/fleet/queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <unordered_set>

namespace flex {

namespace {

Event with_nodes(Event event,
                 const std::string& what,
                 JobId job,
                 const std::vector<NodeName>& nodes) {
  event.what = what;
  event.job = job;
  set_nodes(event, nodes);
  return event;
}

/// Why the nodes are not asked for: the sweeper does so, or nobody can.
Event refused(const Event& like,
              JobId job,
              const std::vector<NodeName>& nodes,
              const Error& error) {
  const bool is_later = waits_for_turn(error);
  Event event = with_nodes(like, is_later ? "left_to_sweeper" : "not_requested", job, nodes);
  // The sweeper's own reason to ask is told beside Google's to refuse.
  if (!like.why.empty()) event.more["asked_because"] = like.why;
  event.why = error.what;
  event.more["code"] = error.code;
  if (!is_later) event.more["then"] = is_permanent(error) ? "given back" : "asked again";
  return event;
}

}  // namespace

bool waits_for_turn(const Error& error) {
  return is_active_requests_quota(error) || is_max_nodes(error);
}

std::vector<Event> asked_events(const Event& like, const Demand& demand) {
  std::vector<Event> events;
  for (const Demand::JobNodes& wanted : demand.jobs)
    events.push_back(with_nodes(like, "asked", wanted.job.id, wanted.nodes));
  if (!demand.jobless.empty()) events.push_back(with_nodes(like, "asked", 0, demand.jobless));
  return events;
}

Event event_of(const Event& like, const RequestOutcome& outcome) {
  const PlannedRequest& request = outcome.request;
  const RequestSpec& spec = request.spec;
  if (outcome.result == RequestResult::Unwanted) {
    Event left = with_nodes(like, "left_to_sweeper", request.job, spec.nodes);
    left.why = kNotWantedAnyMore;
    return left;
  }
  const bool is_failed = outcome.result == RequestResult::Failed;
  Event event = is_failed
                    ? refused(like, request.job, spec.nodes, outcome.error)
                    : with_nodes(like,
                                 outcome.result == RequestResult::Requested ? "requested"
                                                                            : "requested_before",
                                 request.job,
                                 spec.nodes);
  event.nodeset = request.nodeset;
  event.group = spec.group.text;
  event.request = spec.name.text;
  event.more["run_s"] = std::to_string(spec.run_duration.count());
  event.more["how"] = request.how;
  event.more["attempt"] = std::to_string(request.way.attempt);
  event.more["mode"] = mode_name(request.mode);
  event.more["zones"] = fmt::format("{}", fmt::join(request.zones, ","));
  if (request.way.step > 0) event.more["step"] = std::to_string(request.way.step);
  if (request.way.is_race) event.more["race"] = "1";
  return event;
}

Event event_of(const Event& like, const Refusal& refusal) {
  return refused(like, refusal.job, refusal.nodes, refusal.error);
}

Event event_of(const Event& like, const CancelOutcome& outcome) {
  const PlannedCancel& cancel = outcome.cancel;
  Event event = with_nodes(like, "cancel_request", cancel.job, cancel.nodes);
  event.group = cancel.group.text;
  event.request = cancel.request.text;
  event.why = cancel.why;
  event.more["result"] = outcome.error ? "failed" : "ok";
  if (outcome.error) event.more["error"] = outcome.error->what;
  return event;
}

std::vector<Event> left_events(const Event& like,
                               const Demand& demand,
                               const std::vector<NodeName>& left,
                               const std::string& why) {
  const std::unordered_set<NodeName> names(left.begin(), left.end());
  std::vector<Event> events;
  const auto add = [&](JobId job, const std::vector<NodeName>& nodes) {
    std::vector<NodeName> some;
    for (const NodeName& node : nodes) {
      if (names.contains(node)) some.push_back(node);
    }
    if (some.empty()) return;
    events.push_back(with_nodes(like, "left_to_sweeper", job, some));
    events.back().why = why;
  };
  for (const Demand::JobNodes& wanted : demand.jobs) add(wanted.job.id, wanted.nodes);
  add(0, demand.jobless);
  return events;
}

Event given_back_event(const Event& like,
                       JobId job,
                       const std::vector<NodeName>& nodes,
                       const std::string& why) {
  Event event = with_nodes(like, "given_back", job, nodes);
  event.why = why;
  return event;
}

std::vector<Event> given_back_events(const Event& like,
                                     const std::vector<Refusal>& refusals,
                                     const std::vector<RequestOutcome>& outcomes) {
  std::vector<Event> events;
  const auto add = [&](JobId job, const std::vector<NodeName>& nodes, const Error& error) {
    if (is_permanent(error)) events.push_back(given_back_event(like, job, nodes, error.what));
  };
  for (const Refusal& refusal : refusals) add(refusal.job, refusal.nodes, refusal.error);
  for (const RequestOutcome& outcome : outcomes) {
    if (outcome.result == RequestResult::Failed)
      add(outcome.request.job, outcome.request.spec.nodes, outcome.error);
  }
  return events;
}

}  // namespace flex
