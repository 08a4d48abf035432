// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on VMs.
#include "emulator/api.h"
#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

Vm* vm_of(World& world, const Call& call) {
  const auto found = world.vms.find(call.place().key(call.param("instance")));
  return found == world.vms.end() ? nullptr : &found->second;
}

std::string vm_path(const Call& call) {
  return path_of(call.place(), "instances", call.param("instance"));
}

/// "node-####" with number 7 is "node-0007".
std::string name_from(const std::string& pattern, std::int64_t number) {
  const std::size_t from = pattern.find('#');
  if (from == std::string::npos) return pattern;
  const std::size_t end = std::min(pattern.find_first_not_of('#', from), pattern.size());
  return pattern.substr(0, from) + fmt::format("{:0{}}", number, end - from) + pattern.substr(end);
}

std::optional<Reply> bulk_names(const Json& body, std::vector<std::string>& names) {
  const auto count = int_of(member(body, "count"));
  const Json& each = member(body, "perInstanceProperties");
  const std::string pattern = text_of(body, "namePattern");
  if (each.is_object())
    for (const auto& [key, value] : each.items()) names.push_back(text_of(value, "name", key));
  if (!names.empty() && count && *count != static_cast<std::int64_t>(names.size()))
    return invalid("'count' does not match 'perInstanceProperties'.");
  if (names.empty()) {
    if (!count || *count < 1 || pattern.empty())
      return refuse(400, "required", "Required: 'count' and 'namePattern', or names.");
    if (*count > 5000) return invalid("'count' is at most 5000.");
    for (std::int64_t i = 1; i <= *count; ++i) names.push_back(name_from(pattern, i));
  }
  for (const std::string& name : names)
    if (!is_rfc1035(name)) return invalid(fmt::format("Invalid instance name '{}'.", name));
  return std::nullopt;
}

/// The zones that a bulkInsert may choose from: those it lists, or all of the region, without those
/// it denies. A preference ALLOW is what every zone has anyway. Nothing: one that does not exist.
std::optional<Json> bulk_zones(const World& world, const Call& call) {
  if (call.place().is_zonal()) return Json::array({call.place().location()});
  const auto all = world.settings.regions.find(call.place().location());
  if (all == world.settings.regions.end()) return std::nullopt;
  const Json& policy = member(call.body, "locationPolicy");
  std::vector<std::string> wanted;
  for (const Json& item : member(policy, "zones")) {
    const std::string url = text_of(item, "zone");
    wanted.push_back(url.substr(url.rfind('/') + 1));
    if (std::find(all->second.begin(), all->second.end(), wanted.back()) == all->second.end())
      return std::nullopt;
  }
  Json zones = Json::array();
  for (const std::string& zone : wanted.empty() ? all->second : wanted) {
    const Json& location = member(member(policy, "locations"), "zones/" + zone);
    if (text_of(location, "preference") != "DENY") zones.push_back(zone);
  }
  return zones;
}

std::int64_t run_seconds_of(const Json& scheduling) {
  return duration_of(member(scheduling, "maxRunDuration")).value_or(0);
}

constexpr std::int64_t kMinRun = 30;
constexpr std::int64_t kMaxRun = 120LL * 24 * 3600;

std::optional<Reply> check_scheduling(const Json& scheduling) {
  if (member(scheduling, "maxRunDuration").is_null()) return std::nullopt;
  const std::int64_t seconds = run_seconds_of(scheduling);
  if (seconds < kMinRun || seconds > kMaxRun)
    return invalid(fmt::format("'maxRunDuration' is from {} s to {} s.", kMinRun, kMaxRun));
  if (text_of(scheduling, "instanceTerminationAction").empty())
    return invalid("'maxRunDuration' needs 'instanceTerminationAction'.");
  return std::nullopt;
}

}  // namespace

Reply instances_get(World& world, const Call& call) {
  const Vm* vm = vm_of(world, call);
  if (vm == nullptr) return not_found(vm_path(call));
  return {.status = 200, .body = to_json(world, *vm)};
}

Reply instances_list(World& world, const Call& call) {
  if (!world.is_zone(call.place().location()))
    return not_found("projects/" + call.project() + "/" + call.place().scope);
  std::vector<Json> items;
  for_each_in(world.vms, call.place(), [&](const Vm& vm) {
    items.push_back(is_on_page(call, items.size()) ? to_json(world, vm) : Json());
  });
  return list_reply(world, call, "compute#instanceList", std::move(items));
}

Reply instances_aggregated(World& world, const Call& call) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [key, vm] : world.vms) {
    if (vm.project != call.project()) continue;
    items.emplace_back("zones/" + vm.zone,
                       is_on_page(call, items.size()) ? to_json(world, vm) : Json());
  }
  return aggregated_reply(
      world, call, "compute#instanceAggregatedList", std::move(items), "instances");
}

Reply instances_insert(World& world, const Call& call) {
  const std::string name = text_of(call.body, "name");
  if (!is_rfc1035(name))
    return invalid(fmt::format("Invalid value for field 'resource.name': '{}'.", name));
  const Place place = call.place();
  if (!world.is_zone(place.location()))
    return not_found("projects/" + place.project + "/" + place.scope);
  if (world.vms.contains(place.key(name))) return already_exists(path_of(place, "instances", name));
  std::string key;
  const std::string url = call.query_value("sourceInstanceTemplate");
  if (!url.empty()) {
    const auto found = world.find_template(place.project, url);
    if (!found) return invalid("Invalid value for field 'sourceInstanceTemplate': not found.");
    key = *found;
  }
  Operation& operation = world.start_operation({.place = place,
                                                .type = "insert",
                                                .target = path_of(place, "instances", name),
                                                .target_id = ++world.next_id,
                                                .effect = Effect::VmsPlaced,
                                                .names = {name}},
                                               call.method->name);
  operation.fault = call.operation_fault;
  operation.plan = Json{{"zones", Json::array({place.location()})},
                        {"template", key},
                        {"run_seconds", run_seconds_of(scheduling_of(world, call.body, key))},
                        {"body", call.body}};
  return {.status = 200, .body = to_json(world, operation)};
}

Reply instances_bulk_insert(World& world, const Call& call) {
  std::vector<std::string> names;
  if (auto bad = bulk_names(call.body, names)) return *bad;
  const Place place = call.place();
  const auto zones = bulk_zones(world, call);
  if (!zones) return invalid("Invalid value for field 'locationPolicy.zones': not of the region.");
  if (zones->empty()) return invalid("No zone is allowed by 'locationPolicy'.");
  std::string key;
  const std::string url = text_of(call.body, "sourceInstanceTemplate");
  if (!url.empty()) {
    const auto found = world.find_template(place.project, url);
    if (!found) return invalid("Invalid value for field 'sourceInstanceTemplate': not found.");
    key = *found;
  }
  Json body = member(call.body, "instanceProperties");
  if (!body.is_object()) body = Json::object();
  const Json scheduling = scheduling_of(world, body, key);
  if (auto bad = check_scheduling(scheduling)) return *bad;
  const auto count = static_cast<std::int64_t>(names.size());
  const std::int64_t least = int_of(member(call.body, "minCount")).value_or(count);
  if (least < 1 || least > count) return invalid("'minCount' is from 1 to 'count'.");
  Operation& operation =
      world.start_operation({.place = place,
                             .type = "bulkInsert",
                             .target = "projects/" + place.project + "/" + place.scope,
                             .effect = Effect::VmsPlaced,
                             .names = names},
                            call.method->name);
  operation.fault = call.operation_fault;
  operation.plan = Json{{"zones", *zones},
                        {"template", key},
                        {"min", least},
                        {"run_seconds", run_seconds_of(scheduling)},
                        {"bulk", true},
                        {"body", body}};
  return {.status = 200, .body = to_json(world, operation)};
}

Reply instances_delete(World& world, const Call& call) {
  Vm* vm = vm_of(world, call);
  if (vm == nullptr) return not_found(vm_path(call));
  vm->status = VmStatus::Stopping;
  ++world.changes;
  return answer_with(world,
                     call,
                     {.place = call.place(),
                      .type = "delete",
                      .target = vm_path(call),
                      .target_id = vm->id,
                      .effect = Effect::VmGone,
                      .subject = vm->key()});
}

Reply instances_serial(World& world, const Call& call) {
  const Vm* vm = vm_of(world, call);
  if (vm == nullptr) return not_found(vm_path(call));
  std::string text = fmt::format("[    0.000000] {} booting in {}\n", vm->name, vm->zone);
  if (vm->status == VmStatus::Running)
    text += vm->is_up ? fmt::format("[    9.000000] {}: up\n", vm->name)
                      : fmt::format("[    9.000000] {}: startup-script failed\n", vm->name);
  const std::size_t start = std::min(static_cast<std::size_t>(std::max<std::int64_t>(
                                         0, parse_int(call.query_value("start")).value_or(0))),
                                     text.size());
  return {.status = 200,
          .body = Json{{"kind", "compute#serialPortOutput"},
                       {"selfLink", url_of(vm_path(call) + "/serialPort")},
                       {"start", std::to_string(start)},
                       {"next", std::to_string(text.size())},
                       {"contents", text.substr(start)}}};
}

}  // namespace flex::emulator
