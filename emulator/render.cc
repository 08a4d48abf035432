// SPDX-License-Identifier: GPL-2.0-or-later
// State as the API shows it.
#include "emulator/api.h"

#include <fmt/format.h>

#include <cmath>

namespace flex::emulator {

namespace {

constexpr std::string_view kBase = "https://www.googleapis.com/compute/v1/";

void set_location(Json& json, const Place& place) {
  if (place.is_regional())
    json["region"] = url_of("projects/" + place.project + "/" + place.scope);
  else if (place.is_zonal())
    json["zone"] = url_of("projects/" + place.project + "/" + place.scope);
}

Json actions_of(const Group& group, bool& is_stable) {
  std::int64_t none = 0;
  std::int64_t creating = 0;
  std::int64_t deleting = 0;
  for (const auto& [name, entry] : group.members) {
    none += static_cast<std::int64_t>(entry.action == MemberAction::None);
    creating += static_cast<std::int64_t>(entry.action == MemberAction::Creating);
    deleting += static_cast<std::int64_t>(entry.action == MemberAction::Deleting);
  }
  is_stable = creating == 0 && deleting == 0 && group.is_ready && !group.is_deleting;
  return Json{{"none", none},
              {"creating", creating},
              {"creatingWithoutRetries", 0},
              {"deleting", deleting},
              {"abandoning", 0},
              {"recreating", 0},
              {"refreshing", 0},
              {"restarting", 0},
              {"resuming", 0},
              {"starting", 0},
              {"stopping", 0},
              {"suspending", 0},
              {"verifying", 0}};
}

Json scheduling_of(const World& world, const Vm& vm) {
  Json scheduling = scheduling_of(world, vm.body, vm.template_key);
  if (vm.ends > 0) {
    const auto seconds = static_cast<std::int64_t>(std::llround(vm.ends - vm.created));
    scheduling["maxRunDuration"] = {{"seconds", std::to_string(seconds)}};
  }
  return scheduling;
}

}  // namespace

std::string url_of(const std::string& path) {
  return std::string(kBase) + path;
}

std::string path_of(const Place& place, const std::string& collection, const std::string& name) {
  return fmt::format("projects/{}/{}/{}/{}", place.project, place.scope, collection, name);
}

Json scheduling_of(const World& world, const Json& body, const std::string& template_key) {
  const auto thing = world.templates.find(template_key);
  Json scheduling = Json::object();
  if (thing != world.templates.end())
    scheduling = member(member(thing->second.body, "properties"), "scheduling");
  if (!scheduling.is_object()) scheduling = Json::object();
  if (member(body, "scheduling").is_object()) scheduling.merge_patch(member(body, "scheduling"));
  return scheduling;
}

Json to_json(const World& world, const Group& group) {
  Json json = group.body;
  bool is_stable = false;
  json["kind"] = "compute#instanceGroupManager";
  json["id"] = std::to_string(group.id);
  json["name"] = group.name;
  json["creationTimestamp"] = world.stamp(group.created);
  json["selfLink"] = url_of(path_of(group.place, "instanceGroupManagers", group.name));
  json["instanceGroup"] = url_of(path_of(group.place, "instanceGroups", group.name));
  json["instanceTemplate"] = group.template_url;
  json["targetSize"] = group.target_size;
  // The default, as Google documents it.
  if (!json.contains("targetSizePolicy")) json["targetSizePolicy"] = {{"mode", "INDIVIDUAL"}};
  json["fingerprint"] = fmt::format("{:011x}=", group.id);
  json["currentActions"] = actions_of(group, is_stable);
  json["status"] = {
      {"isStable", is_stable},
      {"versionTarget", {{"isReached", true}}},
      {"allInstancesConfig", {{"effective", true}}},
      {"stateful",
       {{"hasStatefulConfig", false}, {"perInstanceConfigs", {{"allEffective", true}}}}}};
  set_location(json, group.place);
  return json;
}

Json to_json(const World& world, const Group& group, const Request& request) {
  const std::string path =
      path_of(group.place, "instanceGroupManagers", group.name) + "/resizeRequests/" + request.name;
  Json json{
      {"kind", "compute#instanceGroupManagerResizeRequest"},
      {"id", std::to_string(request.id)},
      {"name", request.name},
      {"creationTimestamp", world.stamp(request.created)},
      {"selfLink", url_of(path)},
      {"selfLinkWithId",
       url_of(path_of(group.place, "instanceGroupManagers", group.name) + "/resizeRequests/" +
              std::to_string(request.id))},
      {"state", to_string(request.state)},
  };
  if (!request.description.empty()) json["description"] = request.description;
  if (request.run_seconds > 0)
    json["requestedRunDuration"] = {{"seconds", std::to_string(request.run_seconds)}};
  if (request.has_names) {
    Json list = Json::array();
    for (const std::string& node : request.nodes) list.push_back(Json{{"name", node}});
    json["instances"] = std::move(list);
  }
  json["resizeBy"] = request.nodes.size();
  if (!request.error.is_null()) json["status"]["error"] = request.error;
  if (!request.last_attempt.is_null() && request.state != RequestState::Succeeded)
    json["status"]["lastAttempt"] = {{"error", request.last_attempt}};
  set_location(json, group.place);
  return json;
}

Json to_json(const World& world, const Group& group, const std::string& name, const Member& entry) {
  Json json{{"name", name},
            {"currentAction", to_string(entry.action)},
            {"version", {{"instanceTemplate", group.template_url}}}};
  if (!entry.error.is_null()) {
    json["lastAttempt"]["errors"] = entry.error;
  } else if (!entry.request.empty() && entry.zone.empty()) {
    const auto request = group.requests.find(entry.request);
    if (request != group.requests.end() && !request->second.last_attempt.is_null())
      json["lastAttempt"]["errors"] = request->second.last_attempt;
  }
  if (entry.zone.empty()) {
    const bool is_queued = entry.action == MemberAction::Creating;
    if (is_queued && says_pending(world.settings.queued_status, name))
      json["instanceStatus"] = to_string(VmStatus::Pending);
    return json;
  }
  const Place place{group.place.project, "zones/" + entry.zone};
  json["instance"] = url_of(path_of(place, "instances", name));
  const auto vm = world.vms.find(place.key(name));
  if (vm == world.vms.end()) return json;
  json["id"] = std::to_string(vm->second.id);
  json["instanceStatus"] = to_string(vm->second.status);
  if (vm->second.ends > 0)
    json["scheduling"]["terminationTimestamp"] = world.stamp(vm->second.ends);
  return json;
}

Json to_json(const World& world, const Vm& vm) {
  Json json = vm.body;
  const auto thing = world.templates.find(vm.template_key);
  const Json& properties =
      thing == world.templates.end() ? Json() : member(thing->second.body, "properties");
  std::string type =
      text_of(json, "machineType", text_of(properties, "machineType", "n1-standard-1"));
  type = type.substr(type.rfind('/') + 1);
  json["kind"] = "compute#instance";
  json["id"] = std::to_string(vm.id);
  json["name"] = vm.name;
  json["zone"] = url_of("projects/" + vm.project + "/zones/" + vm.zone);
  json["selfLink"] = url_of(path_of(vm.place(), "instances", vm.name));
  json["machineType"] = url_of(path_of(vm.place(), "machineTypes", type));
  // One that is in no group is PENDING before anything is made.
  const bool is_pending = vm.group.empty() && vm.status == VmStatus::Provisioning &&
                          says_pending(world.settings.queued_status, vm.name);
  json["status"] = to_string(is_pending ? VmStatus::Pending : vm.status);
  json["creationTimestamp"] = world.stamp(vm.created);
  json["scheduling"] = scheduling_of(world, vm);
  for (const char* key : {"labels", "tags", "metadata", "serviceAccounts", "guestAccelerators"})
    if (!json.contains(key) && !member(properties, key).is_null()) json[key] = properties[key];
  json["networkInterfaces"] = Json::array(
      {Json{{"name", "nic0"},
            {"network", url_of("projects/" + vm.project + "/global/networks/default")},
            {"networkIP",
             fmt::format("10.{}.{}.{}", (vm.id >> 16) % 256, (vm.id >> 8) % 256, vm.id % 256)}}});
  if (vm.ends > 0)
    json["resourceStatus"]["scheduling"]["terminationTimestamp"] = world.stamp(vm.ends);
  const auto group = world.groups.find(vm.group);
  if (group != world.groups.end()) {
    // As Google does: how a VM knows its group.
    const Group& owner = group->second;
    Json& items = json["metadata"]["items"];
    if (!items.is_array()) items = Json::array();
    items.push_back(Json{{"key", "created-by"},
                         {"value", path_of(owner.place, "instanceGroupManagers", owner.name)}});
  }
  return json;
}

Json to_json(const World& world, const Operation& operation) {
  const bool is_done = operation.status == OperationStatus::Done;
  Json json{
      {"kind", "compute#operation"},
      {"id", std::to_string(operation.id)},
      {"name", operation.name},
      {"operationType", operation.type},
      {"targetLink", url_of(operation.target)},
      {"targetId", std::to_string(operation.target_id)},
      {"status", to_string(operation.status)},
      {"user", "emulator@example.com"},
      {"progress", is_done ? 100 : 0},
      {"insertTime", world.stamp(operation.inserted)},
      {"startTime", world.stamp(operation.inserted)},
      {"selfLink", url_of(path_of(operation.place, "operations", operation.name))},
  };
  if (is_done) json["endTime"] = world.stamp(operation.ended);
  if (!operation.error.is_null()) {
    json["error"] = operation.error;
    json["httpErrorStatusCode"] = 400;
    json["httpErrorMessage"] = "BAD REQUEST";
  }
  if (!operation.metadata.is_null())
    json["instancesBulkInsertOperationMetadata"] = operation.metadata;
  set_location(json, operation.place);
  return json;
}

Json to_json(const World& world,
             const Thing& thing,
             const std::string& collection,
             const std::string& kind) {
  Json json = thing.body;
  json["kind"] = kind;
  json["id"] = std::to_string(thing.id);
  json["name"] = thing.name;
  json["creationTimestamp"] = world.stamp(thing.created);
  json["selfLink"] = url_of(path_of(thing.place, collection, thing.name));
  set_location(json, thing.place);
  return json;
}

}  // namespace flex::emulator
