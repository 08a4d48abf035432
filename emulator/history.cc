// SPDX-License-Identifier: GPL-2.0-or-later
#include "emulator/history.h"

#include "emulator/clock.h"

#include <utility>

namespace flex::emulator {

namespace {

constexpr std::size_t kMaxEvents = 50000;

/// The last word of "project/scope/name".
std::string name_of(const std::string& key) {
  return key.substr(key.rfind('/') + 1);  // npos + 1 is 0
}

Json vm_event(const std::string& what, const Vm& vm) {
  return Json{{"event", what},
              {"id", vm.id},
              {"name", vm.name},
              {"zone", vm.zone},
              {"group", name_of(vm.group)}};
}

Json request_event(const std::string& what, const Group& group, const Request& request) {
  return Json{{"event", what},
              {"id", request.id},
              {"name", request.name},
              {"group", group.name},
              {"group_id", group.id}};
}

}  // namespace

void History::add(const VirtualClock& clock, Json event) {
  event["time"] = clock.wall();
  event["virtual_time"] = clock.now();
  events_.push_back(std::move(event));
  if (events_.size() <= kMaxEvents) return;
  events_.pop_front();
  ++dropped_;
}

void History::vm_made(const VirtualClock& clock, const Vm& vm, const Group* group) {
  Json event = vm_event("vm_made", vm);
  event["description"] = text_of(group == nullptr ? vm.body : group->body, "description");
  event["request"] = "";
  if (group != nullptr) {
    const auto entry = group->members.find(vm.name);
    if (entry != group->members.end()) event["request"] = entry->second.request;
  }
  event["run_seconds"] = vm.ends > 0 ? vm.ends - vm.created : 0.0;
  add(clock, std::move(event));
}

void History::vm_gone(const VirtualClock& clock, const Vm& vm, const std::string& how) {
  Json event = vm_event("vm_gone", vm);
  event["how"] = how;
  add(clock, std::move(event));
}

void History::request_made(const VirtualClock& clock, const Group& group, const Request& request) {
  Json event = request_event("request_made", group, request);
  event["nodes"] = request.nodes;
  event["run_seconds"] = request.run_seconds;
  event["description"] = request.description;
  event["group_description"] = text_of(group.body, "description");
  add(clock, std::move(event));
}

void History::request_ended(const VirtualClock& clock, const Group& group, const Request& request) {
  Json event = request_event("request_ended", group, request);
  event["state"] = to_string(request.state);
  add(clock, std::move(event));
}

void History::time_changed(const VirtualClock& clock) {
  add(clock, Json{{"event", "time_changed"}, {"factor", clock.factor()}});
}

Json History::dump() const {
  Json events = Json::array();
  for (const Json& event : events_) events.push_back(event);
  return Json{{"dropped", dropped_}, {"events", std::move(events)}};
}

}  // namespace flex::emulator
