// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/events.h"

namespace flex {

namespace {

Event with_nodes(Event event, const std::string& what, const std::vector<NodeName>& nodes) {
  event.what = what;
  set_nodes(event, nodes);
  return event;
}

}  // namespace

Event suspend_event(const Event& like, const std::vector<NodeName>& nodes, bool is_resume_fail) {
  return with_nodes(like, is_resume_fail ? "resume_failed" : "suspend", nodes);
}

std::vector<Event> events_of(const Event& like, const SuspendOutcome& outcome) {
  std::vector<Event> events;
  const auto add = [&](const std::string& what,
                       const MigName& group,
                       const std::vector<NodeName>& nodes) -> Event& {
    Event& event = events.emplace_back(with_nodes(like, what, nodes));
    event.group = group.text;
    event.more["result"] = "ok";
    return event;
  };
  for (const PlannedCancel& cancel : outcome.cancelled) {
    Event& event = add("cancel_request", cancel.group, cancel.nodes);
    event.request = cancel.request.text;
    event.job = cancel.job;
  }
  for (const PlannedDeletion& deletion : outcome.deleted) {
    std::vector<NodeName> names;
    for (const Instance& instance : deletion.instances) names.push_back(instance.name);
    add("delete_instances", deletion.group, names);
  }
  for (const SuspendFailure& failure : outcome.failed) {
    Event& event = add("not_suspended", failure.group, failure.nodes);
    event.more["result"] = "failed";
    event.more["error"] = failure.error.what;
  }
  return events;
}

Event put_back_event(const Event& like,
                     const std::vector<NodeName>& nodes,
                     const std::string& why) {
  Event event = with_nodes(like, "given_back", nodes);
  event.why = why;
  return event;
}

}  // namespace flex
