// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on regions, zones, projects, operations, and the lists that gcloud looks at in passing.
#include "emulator/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex::emulator {

namespace {

constexpr double kEpoch = 1400000000;

std::string project_path(const Call& call) {
  return "projects/" + call.project();
}

/// What every region has, and nothing here comes near to.
std::map<std::string, std::int64_t> usual_quota() {
  return {{"CPUS", 500000},
          {"DISKS_TOTAL_GB", 500000},
          {"INSTANCES", 500000},
          {"INSTANCE_GROUPS", 5000},
          {"INSTANCE_GROUP_MANAGERS", 5000},
          {"IN_USE_ADDRESSES", 500000},
          {"SSD_TOTAL_GB", 500000}};
}

Json quotas_of(const World& world, const std::string& region) {
  std::map<std::string, std::int64_t> limits = usual_quota();
  for (const auto& [metric, limit] : world.settings.quota) limits[metric] = limit;
  std::int64_t vms = 0;
  for (const std::string& zone : world.settings.regions.at(region)) vms += world.count_vms(zone);
  Json quotas = Json::array();
  // The API's Region lists only the metrics it knows; the quota of active requests is elsewhere.
  const FieldShape& known = shapes().message("Quota")->at("metric");
  for (const auto& [metric, limit] : limits)
    if (known.values.contains(metric))
      quotas.push_back(Json{{"metric", metric},
                            {"limit", static_cast<double>(limit)},
                            {"usage", metric == "INSTANCES" ? static_cast<double>(vms) : 0.0}});
  return quotas;
}

Json region_json(const World& world, const Call& call, const std::string& name) {
  Json zones = Json::array();
  for (const std::string& zone : world.settings.regions.at(name))
    zones.push_back(url_of(project_path(call) + "/zones/" + zone));
  return Json{{"kind", "compute#region"},
              {"id", "1000"},
              {"name", name},
              {"description", name},
              {"status", "UP"},
              {"creationTimestamp", format_stamp(kEpoch)},
              {"selfLink", url_of(project_path(call) + "/regions/" + name)},
              {"zones", zones},
              {"quotas", quotas_of(world, name)},
              {"supportsPzs", false}};
}

Json zone_json(const World& world, const Call& call, const std::string& name) {
  return Json{{"kind", "compute#zone"},
              {"id", "2000"},
              {"name", name},
              {"description", name},
              {"status", world.settings.zones_down.contains(name) ? "DOWN" : "UP"},
              {"creationTimestamp", format_stamp(kEpoch)},
              {"region", url_of(project_path(call) + "/regions/" + world.region_of(name))},
              {"selfLink", url_of(project_path(call) + "/zones/" + name)}};
}

Json instance_group_json(const World& world, const Group& group) {
  Json json{{"kind", "compute#instanceGroup"},
            {"id", std::to_string(group.id)},
            {"name", group.name},
            {"creationTimestamp", world.stamp(group.created)},
            {"selfLink", url_of(path_of(group.place, "instanceGroups", group.name))},
            {"size", group.target_size}};
  json[group.place.is_regional() ? "region" : "zone"] =
      url_of("projects/" + group.place.project + "/" + group.place.scope);
  return json;
}

}  // namespace

Reply regions_get(World& world, const Call& call) {
  const std::string name = call.param("region");
  if (!world.is_region(name)) return not_found(project_path(call) + "/regions/" + name);
  return {.status = 200, .body = region_json(world, call, name)};
}

Reply regions_list(World& world, const Call& call) {
  std::vector<Json> items;
  for (const auto& [name, zones] : world.settings.regions)
    items.push_back(region_json(world, call, name));
  return list_reply(world, call, "compute#regionList", std::move(items));
}

Reply zones_get(World& world, const Call& call) {
  const std::string name = call.param("zone");
  if (!world.is_zone(name)) return not_found(project_path(call) + "/zones/" + name);
  return {.status = 200, .body = zone_json(world, call, name)};
}

Reply zones_list(World& world, const Call& call) {
  std::vector<Json> items;
  for (const auto& [region, zones] : world.settings.regions)
    for (const std::string& zone : zones) items.push_back(zone_json(world, call, zone));
  return list_reply(world, call, "compute#zoneList", std::move(items));
}

Reply projects_get(World& /*world*/, const Call& call) {
  return {
      .status = 200,
      .body = Json{{"kind", "compute#project"},
                   {"id", "7391834625100293847"},
                   {"name", call.project()},
                   {"creationTimestamp", format_stamp(kEpoch)},
                   {"selfLink", url_of(project_path(call))},
                   {"defaultServiceAccount", "123456789012-compute@developer.gserviceaccount.com"},
                   {"commonInstanceMetadata", {{"kind", "compute#metadata"}}}}};
}

Reply instance_groups_get(World& world, const Call& call) {
  const std::string name = call.param("instanceGroup");
  const auto found = world.groups.find(call.place().key(name));
  if (found == world.groups.end()) return not_found(path_of(call.place(), "instanceGroups", name));
  return {.status = 200, .body = instance_group_json(world, found->second)};
}

Reply instance_groups_list(World& world, const Call& call) {
  std::vector<Json> items;
  for_each_in(world.groups, call.place(), [&](const Group& group) {
    items.push_back(instance_group_json(world, group));
  });
  return list_reply(
      world,
      call,
      call.place().is_regional() ? "compute#regionInstanceGroupList" : "compute#instanceGroupList",
      std::move(items));
}

Reply instance_groups_aggregated(World& world, const Call& call) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [key, group] : world.groups)
    if (group.place.project == call.project())
      items.emplace_back(group.place.scope, instance_group_json(world, group));
  return aggregated_reply(
      world, call, "compute#instanceGroupAggregatedList", std::move(items), "instanceGroups");
}

Reply autoscalers_list(World& world, const Call& call) {
  return list_reply(
      world,
      call,
      call.place().is_regional() ? "compute#regionAutoscalerList" : "compute#autoscalerList",
      {});
}

Reply autoscalers_aggregated(World& world, const Call& call) {
  return aggregated_reply(world, call, "compute#autoscalerAggregatedList", {}, "autoscalers");
}

Reply operations_get(World& world, const Call& call) {
  const std::string name = call.param("operation");
  const auto found = world.operations.find(call.place().key(name));
  if (found == world.operations.end()) return not_found(path_of(call.place(), "operations", name));
  return {.status = 200, .body = to_json(world, found->second)};
}

Reply operations_list(World& world, const Call& call) {
  std::vector<Json> items;
  for_each_in(world.operations, call.place(), [&](const Operation& operation) {
    items.push_back(is_on_page(call, items.size()) ? to_json(world, operation) : Json());
  });
  return list_reply(world, call, "compute#operationList", std::move(items));
}

Reply operations_aggregated(World& world, const Call& call) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [key, operation] : world.operations) {
    if (operation.place.project != call.project()) continue;
    items.emplace_back(operation.place.scope,
                       is_on_page(call, items.size()) ? to_json(world, operation) : Json());
  }
  return aggregated_reply(
      world, call, "compute#operationAggregatedList", std::move(items), "operations");
}

}  // namespace flex::emulator
