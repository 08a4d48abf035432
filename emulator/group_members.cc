// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on the managed instances of a group.
#include "emulator/api.h"
#include "emulator/groups.h"
#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

constexpr std::size_t kMaxDelete = 1000;

Reply limit_exceeded(const Group& group) {
  return refuse(400,
                "limitExceeded",
                fmt::format("LIMIT_EXCEEDED: Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP' on "
                            "resource '{}'. Limit: {}.0",
                            group.name,
                            max_group_size(group)));
}

OperationSpec spec_of(const Group& group, const std::string& type, Effect effect) {
  return {.place = group.place,
          .type = type,
          .target = path_of(group.place, "instanceGroupManagers", group.name),
          .target_id = group.id,
          .effect = effect,
          .subject = group.key()};
}

/// Marks entries as leaving; the operation takes them away.
void start_deleting(World& world, Group& group, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    Member& entry = group.members.at(name);
    if (entry.action != MemberAction::Deleting && group.target_size > 0) --group.target_size;
    entry.action = MemberAction::Deleting;
    const auto vm = world.vms.find(Place{group.place.project, "zones/" + entry.zone}.key(name));
    if (vm != world.vms.end()) vm->second.status = VmStatus::Stopping;
  }
  ++world.changes;
}

/// Why the entry cannot be deleted, or nothing.
std::optional<std::string> why_not(const Group& group, const std::string& given, bool is_url) {
  const std::string name = given.substr(given.rfind('/') + 1);
  const auto entry = group.members.find(name);
  if (entry == group.members.end())
    return fmt::format(
        "Instance '{}' is not a member of the managed instance group '{}'.", given, group.name);
  if (entry->second.zone.empty()) {
    if (is_url) return fmt::format("Instance '{}' is queued and has no URL.", given);
    if (!entry->second.request.empty())
      return fmt::format(
          "Instance '{}' is part of the resize request '{}' and cannot be deleted; "
          "cancel the request.",
          given,
          entry->second.request);
    return std::nullopt;
  }
  const std::string zone = "/zones/" + entry->second.zone + "/";
  const std::string path = "/" + given;
  if (is_url && path.find(zone) == std::string::npos)
    return fmt::format(
        "Instance '{}' is not a member of the managed instance group '{}'.", given, group.name);
  return std::nullopt;
}

}  // namespace

Reply groups_resize(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  const auto size = parse_int(call.query_value("size"));
  if (!size || *size < 0) return refuse(400, "required", "Required parameter: size");
  if (*size > max_group_size(*group)) return limit_exceeded(*group);
  const bool is_active = std::any_of(group->requests.begin(),
                                     group->requests.end(),
                                     [](const auto& entry) { return entry.second.is_active(); });
  if (is_active)
    return refuse(
        412, "conditionNotMet", "CONDITION_NOT_MET: the group has active resize requests.");
  OperationSpec spec = spec_of(*group, "compute.instanceGroupManagers.resize", Effect::GroupFill);
  const std::string base = text_of(group->body, "baseInstanceName", group->name);
  while (group->target_size < *size) {
    if (group->members.emplace(base + "-" + world.random_suffix(4), Member{}).second)
      ++group->target_size;
  }
  if (group->target_size > *size) {
    for (const auto& [name, entry] : group->members) {
      if (static_cast<std::int64_t>(spec.names.size()) >= group->target_size - *size) break;
      if (entry.action != MemberAction::Deleting) spec.names.push_back(name);
    }
    start_deleting(world, *group, spec.names);
    spec.effect = Effect::MembersGone;
  }
  return answer_with(world, call, std::move(spec));
}

Reply groups_create_instances(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  if (!group->is_ready || group->is_deleting)
    return refuse(
        400, "resourceNotReady", fmt::format("The resource '{}' is not ready", group_path(call)));
  const Json& list = member(call.body, "instances");
  if (!list.is_array() || list.empty())
    return refuse(400, "required", "Required field 'instances' not specified");
  if (group->target_size + static_cast<std::int64_t>(list.size()) > max_group_size(*group))
    return limit_exceeded(*group);
  OperationSpec spec =
      spec_of(*group, "compute.instanceGroupManagers.createInstances", Effect::GroupFill);
  for (const Json& item : list) {
    const std::string name = text_of(item, "name");
    if (!is_rfc1035(name)) return invalid(fmt::format("Invalid instance name '{}'.", name));
    if (group->members.contains(name) ||
        std::find(spec.names.begin(), spec.names.end(), name) != spec.names.end())
      return invalid(fmt::format("Instance '{}' already exists in the group.", name));
    spec.names.push_back(name);
  }
  for (const std::string& name : spec.names)
    if (group->members.emplace(name, Member{}).second) ++group->target_size;
  ++world.changes;
  return answer_with(world, call, std::move(spec));
}

Reply groups_delete_instances(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  const Json& list = member(call.body, "instances");
  if (!list.is_array() || list.empty())
    return refuse(400, "required", "Required field 'instances' not specified");
  if (list.size() > kMaxDelete)
    return invalid(fmt::format("At most {} instances can be deleted in one call.", kMaxDelete));
  const auto is_url = [](const Json& item) {
    return item.get_ref<const std::string&>().find('/') != std::string::npos;
  };
  const auto urls = std::count_if(list.begin(), list.end(), is_url);
  if (urls != 0 && urls != static_cast<std::ptrdiff_t>(list.size()))
    return invalid("Instance URLs and instance names cannot be mixed in one request.");
  const bool is_skipping = flag_of(call.body, "skipInstancesOnValidationError");
  OperationSpec spec =
      spec_of(*group, "compute.instanceGroupManagers.deleteInstances", Effect::MembersGone);
  for (const Json& item : list) {
    const auto& given = item.get_ref<const std::string&>();
    if (const auto problem = why_not(*group, given, urls != 0)) {
      if (is_skipping) continue;
      return invalid(*problem);
    }
    spec.names.push_back(given.substr(given.rfind('/') + 1));
  }
  start_deleting(world, *group, spec.names);
  return answer_with(world, call, std::move(spec));
}

Reply groups_list_managed(World& world, const Call& call) {
  const Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  std::vector<Json> items;
  items.reserve(group->members.size());
  for (const auto& [name, entry] : group->members)
    items.push_back(to_json(world, *group, name, entry));
  Call pages = call;
  if (text_of(group->body, "listManagedInstancesResults") != "PAGINATED")
    pages.params.emplace("pageless", "");
  Reply reply = list_reply(world, pages, "", std::move(items), "managedInstances");
  for (const char* key : {"kind", "id", "selfLink"}) reply.body.erase(key);
  return reply;
}

Reply groups_list_errors(World& world, const Call& call) {
  const Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  return {.status = 200, .body = Json::object()};
}

Reply groups_list_configs(World& world, const Call& call) {
  return groups_list_errors(world, call);
}

}  // namespace flex::emulator
