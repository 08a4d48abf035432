// SPDX-License-Identifier: GPL-2.0-or-later
// Calls on resize requests.
#include "emulator/api.h"
#include "emulator/groups.h"
#include "lib/core/names.h"

#include <fmt/format.h>

#include <set>

namespace flex::emulator {

namespace {

constexpr std::int64_t kMinRun = 600;
constexpr std::int64_t kMaxRun = 604800;
constexpr std::size_t kMaxVms = 1000;

std::string request_path(const Call& call) {
  return group_path(call) + "/resizeRequests/" + call.param("resizeRequest");
}

Request* request_of(Group& group, const Call& call) {
  const auto found = group.requests.find(call.param("resizeRequest"));
  return found == group.requests.end() ? nullptr : &found->second;
}

OperationSpec spec_of(const Group& group,
                      const Request& request,
                      const std::string& type,
                      Effect effect) {
  // As Google does it: an insertion's target is the group, and gcloud relies on that.
  const std::string path = path_of(group.place, "instanceGroupManagers", group.name);
  const bool is_insert = effect == Effect::RequestAccepted;
  return {.place = group.place,
          .type = type,
          .target = is_insert ? path : path + "/resizeRequests/" + request.name,
          .target_id = is_insert ? group.id : request.id,
          .effect = effect,
          .subject = group.key(),
          .request = request.name};
}

/// What keeps the group from taking resize requests at all.
std::optional<Reply> check_group(const World& world, const Group& group) {
  if (!group.is_ready || group.is_deleting)
    return refuse(400,
                  "resourceNotReady",
                  fmt::format("The resource '{}' is not ready",
                              path_of(group.place, "instanceGroupManagers", group.name)));
  const Json& policy = member(group.body, "instanceLifecyclePolicy");
  if (text_of(policy, "defaultActionOnFailure", "REPAIR") != "DO_NOTHING")
    return invalid(
        "Resize requests need a group with repairs turned off: "
        "instanceLifecyclePolicy.defaultActionOnFailure must be DO_NOTHING.");
  const std::string shape =
      text_of(member(group.body, "distributionPolicy"), "targetShape", "EVEN");
  if (group.place.is_regional() && shape != "ANY_SINGLE_ZONE")
    return invalid(
        "Resize requests in a regional group need distributionPolicy.targetShape "
        "ANY_SINGLE_ZONE.");
  if (!world.templates.contains(group.template_key))
    return invalid("The instance template of the group was not found.");
  return std::nullopt;
}

std::optional<Reply> check_run(const World& world,
                               const Group& group,
                               Request& request,
                               const Json& body) {
  const Json& scheduling =
      member(member(world.templates.at(group.template_key).body, "properties"), "scheduling");
  const auto from_template = duration_of(member(scheduling, "maxRunDuration"));
  const Json& given = member(body, "requestedRunDuration");
  if (given.is_null()) {
    if (text_of(scheduling, "provisioningModel") != "FLEX_START" && !from_template)
      return refuse(
          400, "required", "Required field 'resource.requestedRunDuration' not specified");
    request.run_seconds = from_template.value_or(kMaxRun);
    return std::nullopt;
  }
  const std::int64_t seconds = duration_of(given).value_or(0);
  if (seconds < kMinRun || seconds > kMaxRun || int_of(member(given, "nanos")).value_or(0) != 0)
    return invalid(
        fmt::format("Invalid value for field 'resource.requestedRunDuration': '{}'. Must "
                    "be between {} and {} seconds.",
                    seconds,
                    kMinRun,
                    kMaxRun));
  request.run_seconds = seconds;
  return std::nullopt;
}

std::optional<Reply> read_names(const Group& group, Request& request, const Json& list) {
  std::set<std::string> seen;
  for (const Json& item : list) {
    const std::string name = text_of(item, "name");
    if (!is_rfc1035(name))
      return invalid(fmt::format("Invalid value for field 'resource.instances.name': '{}'.", name));
    if (!seen.insert(name).second)
      return invalid(fmt::format("Instance name '{}' is given twice.", name));
    if (group.members.contains(name))
      return invalid(fmt::format(
          "Instance '{}' already exists in the managed instance group '{}'.", name, group.name));
    request.nodes.push_back(name);
  }
  request.has_names = true;
  return std::nullopt;
}

std::optional<Reply> read_size(World& world,
                               const Group& group,
                               Request& request,
                               const Json& body) {
  const Json& list = member(body, "instances");
  const bool has_list = list.is_array() && !list.empty();
  const std::int64_t by = int_of(member(body, "resizeBy")).value_or(0);
  if (has_list == (by != 0))
    return invalid("Exactly one of 'resource.resizeBy' and 'resource.instances' must be set.");
  if (by < 0 || by > static_cast<std::int64_t>(kMaxVms) || list.size() > kMaxVms)
    return invalid(fmt::format("A resize request is for 1 to {} VMs.", kMaxVms));
  if (has_list) return read_names(group, request, list);
  const std::string base = text_of(group.body, "baseInstanceName", group.name);
  std::set<std::string> seen;
  while (static_cast<std::int64_t>(request.nodes.size()) < by) {
    std::string name = base + "-" + world.random_suffix(4);
    if (!group.members.contains(name) && seen.insert(name).second)
      request.nodes.push_back(std::move(name));
  }
  return std::nullopt;
}

std::optional<Reply> check_limits(const World& world, const Group& group, const Request& request) {
  const std::int64_t size = group.target_size + static_cast<std::int64_t>(request.nodes.size());
  if (size > max_group_size(group))
    return refuse(400,
                  "limitExceeded",
                  fmt::format("LIMIT_EXCEEDED: Exceeded limit 'MAX_INSTANCES_IN_INSTANCE_GROUP' on "
                              "resource '{}'. Limit: {}.0",
                              group.name,
                              max_group_size(group)));
  const std::string location = group.place.location();
  const std::string region = group.place.is_regional() ? location : world.region_of(location);
  const auto quota = world.settings.quota.find("ACTIVE_RESIZE_REQUESTS");
  if (quota != world.settings.quota.end() && quota->second >= 0 &&
      world.count_active(group.place.project, region) >= quota->second)
    return refuse(403,
                  "quotaExceeded",
                  fmt::format("QUOTA_EXCEEDED: Quota 'ACTIVE_RESIZE_REQUESTS' exceeded.  Limit: "
                              "{}.0 in region {}.",
                              quota->second,
                              region));
  return std::nullopt;
}

}  // namespace

Reply requests_insert(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  Request request{.name = text_of(call.body, "name"),
                  .description = text_of(call.body, "description"),
                  .created = world.clock.now()};
  if (!is_rfc1035(request.name))
    return invalid(
        fmt::format("Invalid value for field 'resource.name': '{}'. Must be a match of "
                    "regex '[a-z](?:[-a-z0-9]{{0,61}}[a-z0-9])?'",
                    request.name));
  if (group->requests.contains(request.name))
    return already_exists(group_path(call) + "/resizeRequests/" + request.name);
  if (auto bad = check_group(world, *group)) return *bad;
  if (auto bad = check_run(world, *group, request, call.body)) return *bad;
  if (auto bad = read_size(world, *group, request, call.body)) return *bad;
  if (auto bad = check_limits(world, *group, request)) return *bad;
  request.id = ++world.next_id;
  OperationSpec spec = spec_of(*group, request, "insert", Effect::RequestAccepted);
  world.add_request(*group, std::move(request));
  return answer_with(world, call, std::move(spec));
}

Reply requests_get(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  const Request* request = request_of(*group, call);
  if (request == nullptr) return not_found(request_path(call));
  return {.status = 200, .body = to_json(world, *group, *request)};
}

Reply requests_list(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  std::vector<Json> items;
  for (const auto& [name, request] : group->requests)
    items.push_back(to_json(world, *group, request));
  return list_reply(world,
                    call,
                    group->place.is_regional()
                        ? "compute#regionInstanceGroupManagerResizeRequestList"
                        : "compute#instanceGroupManagerResizeRequestList",
                    std::move(items));
}

Reply requests_cancel(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  Request* request = request_of(*group, call);
  if (request == nullptr) return not_found(request_path(call));
  if (request->state != RequestState::Accepted)
    return refuse(412,
                  "conditionNotMet",
                  fmt::format("CONDITION_NOT_MET: the resize request '{}' is {}; only an ACCEPTED "
                              "request can be cancelled.",
                              request->name,
                              to_string(request->state)));
  request->is_cancelling = true;
  ++world.changes;
  return answer_with(world, call, spec_of(*group, *request, "cancel", Effect::RequestCancelled));
}

Reply requests_delete(World& world, const Call& call) {
  Group* group = group_of(world, call);
  if (group == nullptr) return not_found(group_path(call));
  const Request* request = request_of(*group, call);
  if (request == nullptr) return not_found(request_path(call));
  if (request->is_active())
    return refuse(412,
                  "conditionNotMet",
                  fmt::format("CONDITION_NOT_MET: the resize request '{}' is {}; cancel it first.",
                              request->name,
                              to_string(request->state)));
  return answer_with(world, call, spec_of(*group, *request, "delete", Effect::RequestGone));
}

}  // namespace flex::emulator
