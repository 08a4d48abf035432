// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on managed instance groups, regional and zonal.
#include "emulator/groups.h"

#include "emulator/api.h"
#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

std::string last_part(const std::string& url) {
  return url.substr(url.rfind('/') + 1);
}

std::string template_of(const Json& body) {
  for (const Json& version : member(body, "versions"))
    if (!text_of(version, "instanceTemplate").empty()) return text_of(version, "instanceTemplate");
  return text_of(body, "instanceTemplate");
}

/// The zones of the group's policy, or all of its region, or its own.
std::optional<std::vector<std::string>> zones_of(const World& world,
                                                 const Place& place,
                                                 const Json& body) {
  if (place.is_zonal()) return std::vector<std::string>{place.location()};
  std::vector<std::string> zones;
  for (const Json& item : member(member(body, "distributionPolicy"), "zones"))
    zones.push_back(last_part(text_of(item, "zone")));
  const auto& all = world.settings.regions.at(place.location());
  const bool is_known = std::all_of(zones.begin(), zones.end(), [&all](const std::string& zone) {
    return std::find(all.begin(), all.end(), zone) != all.end();
  });
  if (!is_known) return std::nullopt;
  return zones.empty() ? all : zones;
}

std::optional<Reply> check_place(const World& world, const Call& call) {
  const Place place = call.place();
  const std::string location = place.location();
  const bool is_known = place.is_regional() ? world.is_region(location) : world.is_zone(location);
  if (is_known) return std::nullopt;
  return not_found("projects/" + place.project + "/" + place.scope);
}

OperationSpec spec_of(const Group& group, const std::string& type, Effect effect) {
  return {.place = group.place,
          .type = type,
          .target = path_of(group.place, "instanceGroupManagers", group.name),
          .target_id = group.id,
          .effect = effect,
          .subject = group.key()};
}

}  // namespace

std::int64_t max_group_size(const Group& group) {
  return group.place.is_regional() ? 2000 : 1000;
}

std::string group_path(const Call& call) {
  return path_of(call.place(), "instanceGroupManagers", call.param("instanceGroupManager"));
}

Group* group_of(World& world, const Call& call) {
  const auto found = world.groups.find(call.place().key(call.param("instanceGroupManager")));
  return found == world.groups.end() ? nullptr : &found->second;
}

Reply groups_insert(World& world, const Call& call) {
  if (auto bad = check_place(world, call)) return *bad;
  const std::string name = text_of(call.body, "name");
  if (!is_rfc1035(name))
    return invalid(
        fmt::format("Invalid value for field 'resource.name': '{}'. Must be a match of "
                    "regex '[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?'",
                    name));
  Group group{.place = call.place(), .name = name, .created = world.clock.now(), .body = call.body};
  const std::string path = path_of(group.place, "instanceGroupManagers", name);
  if (world.groups.contains(group.key())) return already_exists(path);
  const std::string url = template_of(call.body);
  if (url.empty())
    return refuse(400, "required", "Required field 'resource.instanceTemplate' not specified");
  const auto key = world.find_template(group.place.project, url);
  if (!key)
    return invalid(
        fmt::format("Invalid value for field 'resource.instanceTemplate': '{}'. The "
                    "resource was not found.",
                    url));
  const auto zones = zones_of(world, group.place, call.body);
  if (!zones) return invalid("Invalid value for field 'resource.distributionPolicy.zones'.");
  const std::string policy = text_of(member(call.body, "resourcePolicies"), "workloadPolicy");
  if (!policy.empty() && !world.policies.contains(group.place.key(last_part(policy))))
    return invalid(
        fmt::format("Invalid value for field 'resource.resourcePolicies.workloadPolicy': '{}'. The "
                    "resource was not found.",
                    policy));
  const std::int64_t size = int_of(member(call.body, "targetSize")).value_or(0);
  if (size < 0 || size > max_group_size(group))
    return refuse(400,
                  "limitExceeded",
                  fmt::format("Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP' on resource '{}'. "
                              "Limit: {}.0",
                              name,
                              max_group_size(group)));
  const Thing& thing = world.templates.at(*key);
  group.id = ++world.next_id;
  group.template_key = *key;
  group.template_url = url_of(path_of(thing.place, "instanceTemplates", thing.name));
  group.zones = *zones;
  group.target_size = size;
  if (text_of(group.body, "baseInstanceName").empty()) group.body["baseInstanceName"] = name;
  if (member(group.body, "versions").is_null())
    group.body["versions"] = Json::array({Json{{"instanceTemplate", group.template_url}}});
  for (Json& version : group.body["versions"]) version["targetSize"] = {{"calculated", size}};
  if (group.place.is_regional() && !group.body.contains("distributionPolicy"))
    group.body["distributionPolicy"] = {{"targetShape", "EVEN"}};
  if (!group.body.contains("listManagedInstancesResults"))
    group.body["listManagedInstancesResults"] = "PAGELESS";
  const std::string base = text_of(group.body, "baseInstanceName");
  for (std::int64_t i = 0; i < size; ++i)
    group.members[base + "-" + world.random_suffix(4)] = Member{};
  group.target_size = static_cast<std::int64_t>(group.members.size());
  OperationSpec spec = spec_of(group, "insert", Effect::GroupReady);
  world.groups[group.key()] = std::move(group);
  return answer_with(world, call, std::move(spec));
}

Reply groups_get(World& world, const Call& call) {
  const Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  return {.status = 200, .body = to_json(world, *group)};
}

Reply groups_list(World& world, const Call& call) {
  if (auto bad = check_place(world, call)) return *bad;
  std::vector<Json> items;
  for_each_in(world.groups, call.place(), [&](const Group& group) {
    items.push_back(to_json(world, group));
  });
  return list_reply(world,
                    call,
                    call.place().is_regional() ? "compute#regionInstanceGroupManagerList"
                                               : "compute#instanceGroupManagerList",
                    std::move(items));
}

Reply groups_aggregated(World& world, const Call& call) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [key, group] : world.groups)
    if (group.place.project == call.project())
      items.emplace_back(group.place.scope, to_json(world, group));
  return aggregated_reply(world,
                          call,
                          "compute#instanceGroupManagerAggregatedList",
                          std::move(items),
                          "instanceGroupManagers");
}

Reply groups_delete(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  group->is_deleting = true;
  for (auto& [name, entry] : group->members) {
    if (entry.zone.empty()) continue;
    entry.action = MemberAction::Deleting;
    const auto vm = world.vms.find(Place{group->place.project, "zones/" + entry.zone}.key(name));
    if (vm != world.vms.end()) vm->second.status = VmStatus::Stopping;
  }
  return answer_with(world, call, spec_of(*group, "delete", Effect::GroupGone));
}

Reply groups_patch(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  const std::string url = template_of(call.body);
  if (!url.empty()) {
    const auto key = world.find_template(group->place.project, url);
    if (!key) return invalid("Invalid value for field 'resource.instanceTemplate': not found.");
    const Thing& thing = world.templates.at(*key);
    group->template_key = *key;
    group->template_url = url_of(path_of(thing.place, "instanceTemplates", thing.name));
  }
  const std::string name = group->name;
  group->body.merge_patch(call.body);
  group->body["name"] = name;
  ++world.changes;
  return answer_with(world, call, spec_of(*group, "patch", Effect::None));
}

}  // namespace flex::emulator
