// SPDX-License-Identifier: GPL-2.0-or-later
// Calls under /_emulator/: settings, faults, journal, state, time. Neither delayed nor in the
// journal.
#include "emulator/front.h"

#include <algorithm>
#include <chrono>

namespace flex::emulator {

namespace {

HttpOut problem(int status, const std::string& message) {
  return json_out(status, Json{{"error", message}});
}

Json ok() {
  return Json{{"ok", true}};
}

double number_query(const HttpIn& in, const std::string& name, double fallback) {
  const auto found = in.query.find(name);
  if (found == in.query.end()) return fallback;
  return std::strtod(found->second.c_str(), nullptr);
}

Json request_dump(const World& world, const Group& group, const Request& request) {
  Json json{{"name", request.name},
            {"group", group.name},
            {"scope", group.place.scope},
            {"project", group.place.project},
            {"state", to_string(request.state)},
            {"nodes", request.nodes},
            {"run_seconds", request.run_seconds},
            {"description", request.description},
            {"created", world.clock.to_wall(request.created)}};
  if (request.finished > 0) json["finished"] = world.clock.to_wall(request.finished);
  if (!request.error.is_null()) json["error"] = request.error;
  if (!request.last_attempt.is_null()) json["last_attempt"] = request.last_attempt;
  return json;
}

Json group_dump(const World& world, const Group& group) {
  Json members = Json::array();
  for (const auto& [name, entry] : group.members)
    members.push_back(Json{{"name", name},
                           {"action", to_string(entry.action)},
                           {"zone", entry.zone},
                           {"request", entry.request}});
  return Json{{"name", group.name},
              {"scope", group.place.scope},
              {"project", group.place.project},
              {"description", text_of(group.body, "description")},
              {"target_size", group.target_size},
              {"ready", group.is_ready},
              {"deleting", group.is_deleting},
              {"created", world.clock.to_wall(group.created)},
              {"members", std::move(members)}};
}

Json vm_dump(const World& world, const Vm& vm) {
  Json json{{"name", vm.name},
            {"zone", vm.zone},
            {"project", vm.project},
            {"status", to_string(vm.status)},
            {"created", world.clock.to_wall(vm.created)},
            {"up", vm.is_up}};
  const auto group = world.groups.find(vm.group);
  json["group"] = group == world.groups.end() ? std::string() : group->second.name;
  if (vm.ends > 0) {
    json["ends"] = world.clock.to_wall(vm.ends);
    json["run_seconds"] = vm.ends - vm.created;
  }
  return json;
}

/// True if the state has what the query asks for.
bool is_reached(const World& world, std::int64_t held, const HttpIn& in) {
  std::int64_t active = 0;
  std::int64_t running = 0;
  std::int64_t pending = 0;
  for (const auto& [key, group] : world.groups)
    active += std::count_if(group.requests.begin(), group.requests.end(), [](const auto& entry) {
      return entry.second.is_active();
    });
  for (const auto& [key, vm] : world.vms)
    running += static_cast<std::int64_t>(vm.status == VmStatus::Running);
  for (const auto& [key, operation] : world.operations)
    pending += static_cast<std::int64_t>(operation.status != OperationStatus::Done);
  const auto is = [&in](const std::string& name, std::int64_t value) {
    const auto wanted = in.query.find(name);
    return wanted == in.query.end() || wanted->second == std::to_string(value);
  };
  return is("active_requests", active) && is("vms", static_cast<std::int64_t>(world.vms.size())) &&
         is("running", running) && is("groups", static_cast<std::int64_t>(world.groups.size())) &&
         is("operations", pending) && is("held", held);
}

}  // namespace

Json Front::state_dump() {
  const std::lock_guard lock(mutex_);
  world_.tick();
  settle();
  Json groups = Json::array();
  Json requests = Json::array();
  Json vms = Json::array();
  Json operations = Json::array();
  Json templates = Json::array();
  Json policies = Json::array();
  for (const auto& [key, group] : world_.groups) {
    groups.push_back(group_dump(world_, group));
    for (const auto& [name, request] : group.requests)
      requests.push_back(request_dump(world_, group, request));
  }
  for (const auto& [key, vm] : world_.vms) vms.push_back(vm_dump(world_, vm));
  for (const auto& [key, operation] : world_.operations)
    if (operation.status != OperationStatus::Done)
      operations.push_back(Json{{"name", operation.name},
                                {"type", operation.type},
                                {"target", operation.target},
                                {"due", operation.due_wall}});
  for (const auto& [key, thing] : world_.templates) templates.push_back(key);
  for (const auto& [key, thing] : world_.policies) policies.push_back(key);
  return Json{{"time", world_.clock.wall()},
              {"virtual_time", world_.clock.now()},
              {"groups", std::move(groups)},
              {"requests", std::move(requests)},
              {"vms", std::move(vms)},
              {"operations", std::move(operations)},
              {"templates", std::move(templates)},
              {"policies", std::move(policies)}};
}

HttpOut Front::wait_for_state(const HttpIn& in) {
  const double deadline = steady_wall() + std::min(number_query(in, "timeout", 10), 600.0);
  std::unique_lock lock(mutex_);
  while (true) {
    world_.tick();
    settle();
    if (is_reached(world_, held_, in)) return json_out(200, Json{{"reached", true}});
    const double left = deadline - steady_wall();
    if (left <= 0 || is_stopping_) return json_out(200, Json{{"reached", false}});
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(left, 1.0)));
  }
}

HttpOut Front::post_control(const std::string& what, const HttpIn& in) {
  const Json body = in.body.empty() ? Json::object() : Json::parse(in.body, nullptr, false);
  if (body.is_discarded()) return problem(400, "the body is not JSON");
  if (what == "config") {
    if (auto bad = configure(body)) return problem(400, *bad);
    return json_out(200, ok());
  }
  const std::lock_guard lock(mutex_);
  world_.tick();
  if (what == "faults") {
    const auto id = faults_.add(body);
    if (!id) return problem(400, id.error().what);
    return json_out(200, Json{{"id", *id}});
  }
  if (what == "reset") {
    world_.reset();
    replays_.clear();
  } else if (what == "kill_instance") {
    const std::string name = text_of(body, "name");
    const auto found = std::find_if(world_.vms.begin(), world_.vms.end(), [&](const auto& entry) {
      return entry.second.name == name;
    });
    if (found == world_.vms.end()) return problem(404, "no VM '" + name + "'");
    world_.end_vm(std::string(found->first), VmEnd::Vanished);
  } else if (what == "advance") {
    if (!member(body, "seconds").is_number() || number_of(body, "seconds", 0) < 0)
      return problem(400, "seconds must be a number, not below 0");
    world_.clock.advance(number_of(body, "seconds", 0));
    world_.history.time_changed(world_.clock);
    ++world_.changes;
  } else {
    return problem(404, "no such control call: " + what);
  }
  world_.tick();
  settle();
  return json_out(200, ok());
}

HttpOut Front::handle_control(const HttpIn& in) {
  const std::string what = in.path.substr(std::string_view("/_emulator/").size());
  if (in.verb == "POST") return post_control(what, in);
  if (in.verb == "DELETE" && what == "faults") {
    const std::lock_guard lock(mutex_);
    faults_.clear();
    return json_out(200, ok());
  }
  if (in.verb == "DELETE" && what == "journal") {
    journal_.clear();
    return json_out(200, ok());
  }
  if (in.verb != "GET") return problem(405, "wrong verb for " + what);
  if (what == "state") return json_out(200, state_dump());
  if (what == "journal")
    return json_out(
        200,
        journal_.since(static_cast<std::uint64_t>(std::max(0.0, number_query(in, "since", 0)))));
  if (what == "counters")
    return json_out(200, Json{{"calls", journal_.counters()}, {"hooks", hooks_.counters()}});
  if (what == "wait") return wait_for_state(in);
  const std::lock_guard lock(mutex_);
  if (what == "config") return json_out(200, to_json(world_.settings, world_.clock.factor()));
  if (what == "faults") return json_out(200, faults_.list());
  if (what == "history") return json_out(200, world_.history.dump());
  return problem(404, "no such control call: " + what);
}

}  // namespace flex::emulator
