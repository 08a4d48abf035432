// SPDX-License-Identifier: GPL-2.0-or-later
// The life of a resize request: CREATING, ACCEPTED, then SUCCEEDED, FAILED or CANCELLED; all of its
// VMs at once, in one zone, or none.
#include "emulator/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

std::string region_name(const World& world, const Group& group) {
  const std::string location = group.place.location();
  return group.place.is_regional() ? location : world.region_of(location);
}

}  // namespace

void World::add_request(Group& group, Request request) {
  group.target_size += static_cast<std::int64_t>(request.nodes.size());
  for (const std::string& node : request.nodes)
    group.members[node] = Member{.request = request.name};
  index_request(group, request);
  history.request_made(clock, group, request);
  group.requests[request.name] = std::move(request);
  ++changes;
}

void World::accept_request(Group& group, Request& request) {
  if (request.state != RequestState::Creating) return;
  request.state = RequestState::Accepted;
  waiting_[request.id] = {group.key(), request.name};
  is_capacity_dirty_ = true;
  ++changes;
}

void World::end_request(Group& group, Request& request, RequestState state, Json error) {
  if (!request.is_active()) return;
  waiting_.erase(request.id);
  --active_requests_[group.place.project + "/" + region_name(*this, group)];
  request.state = state;
  request.finished = clock.now();
  request.error = std::move(error);
  request.is_cancelling = false;
  history.request_ended(clock, group, request);
  if (state != RequestState::Succeeded)
    for (const std::string& node : request.nodes) drop_member(group, node);
  // A group's deletion waits for its requests.
  for (const std::string& key : blocked_) due_operations_.emplace(clock.wall(), key);
  blocked_.clear();
  ++changes;
}

std::int64_t World::count_active(const std::string& project, const std::string& region) const {
  const auto found = active_requests_.find(project + "/" + region);
  return found == active_requests_.end() ? 0 : found->second;
}

void World::drop_member(Group& group, const std::string& name) {
  if (group.members.erase(name) > 0 && group.target_size > 0) --group.target_size;
  ++changes;
}

void World::grant() {
  const auto waiting = waiting_;  // in order of arrival; serving one changes the original
  for (const auto& [id, where] : waiting) {
    const auto group = groups.find(where.first);
    if (group == groups.end()) continue;
    const auto request = group->second.requests.find(where.second);
    if (request == group->second.requests.end() || request->second.is_cancelling) continue;
    try_grant(group->second, request->second);
  }
  const auto filling = filling_;
  for (const std::string& key : filling) {
    const auto group = groups.find(key);
    if (group != groups.end()) fill(group->second);
  }
}

bool World::try_grant(Group& group, Request& request) {
  const auto count = static_cast<std::int64_t>(request.nodes.size());
  const std::string& project = group.place.project;
  if (auto problem = quota_problem(project, region_name(*this, group), group.template_key, count)) {
    request.last_attempt = std::move(*problem);
    ++changes;
    return false;
  }
  std::string taken;
  for (const std::string& zone : group.zones) {
    if (free_slots(zone) < count) continue;
    const Place place{project, "zones/" + zone};
    const auto clash =
        std::find_if(request.nodes.begin(), request.nodes.end(), [&](const std::string& node) {
          return vms.contains(place.key(node));
        });
    if (clash == request.nodes.end()) {
      place_request(group, request, zone);
      return true;
    }
    taken = fmt::format("projects/{}/zones/{}/instances/{}", project, zone, *clash);
  }
  if (!taken.empty()) {
    end_request(group,
                request,
                RequestState::Failed,
                error_json("RESOURCE_ALREADY_EXISTS",
                           fmt::format("The resource '{}' already exists", taken)));
    return false;
  }
  request.last_attempt = capacity_problem(group.zones, group.template_key, count);
  ++changes;
  return false;
}

void World::place_request(Group& group, Request& request, const std::string& zone) {
  for (const std::string& node : request.nodes) {
    group.members[node].zone = zone;
    make_vm({.project = group.place.project,
             .zone = zone,
             .name = node,
             .group = group.key(),
             .template_key = group.template_key,
             .run_seconds = request.run_seconds});
  }
  end_request(group, request, RequestState::Succeeded, {});
}

void World::fill_group(const std::string& key) {
  filling_.insert(key);
  is_capacity_dirty_ = true;
}

/// Why an entry waits, if it is not for lack of capacity.
std::optional<Json> World::wait_reason(const Group& group,
                                       const std::string& name,
                                       std::int64_t count) const {
  const std::string& project = group.place.project;
  if (auto problem = quota_problem(project, region_name(*this, group), group.template_key, count))
    return problem;
  for (const std::string& zone : group.zones) {
    if (free_slots(zone) < count || !vms.contains(Place{project, "zones/" + zone}.key(name)))
      continue;
    return error_json("RESOURCE_ALREADY_EXISTS",
                      fmt::format("The resource 'projects/{}/zones/{}/instances/{}' already exists",
                                  project,
                                  zone,
                                  name));
  }
  return std::nullopt;
}

void World::fill(Group& group) {
  std::vector<std::string> waiting;
  std::string zone_in_use;
  for (const auto& [name, entry] : group.members) {
    if (!entry.zone.empty()) {
      zone_in_use = entry.zone;
    } else if (entry.request.empty() && entry.action == MemberAction::Creating) {
      waiting.push_back(name);
    }
  }
  const Json& policy = member(group.body, "targetSizePolicy");
  const bool is_bulk = text_of(policy, "mode") == "BULK";
  const bool is_single = is_bulk || text_of(member(group.body, "distributionPolicy"),
                                            "targetShape") == "ANY_SINGLE_ZONE";
  const auto thing = templates.find(group.template_key);
  const std::int64_t run_seconds =
      thing == templates.end()
          ? 0
          : duration_of(member(member(member(thing->second.body, "properties"), "scheduling"),
                               "maxRunDuration"))
                .value_or(0);
  bool is_left = false;
  for (const std::string& name : waiting) {
    const auto need = is_bulk ? static_cast<std::int64_t>(waiting.size()) : 1;
    const bool has_quota =
        !quota_problem(group.place.project, region_name(*this, group), group.template_key, need);
    const auto zone =
        std::find_if(group.zones.begin(), group.zones.end(), [&](const std::string& candidate) {
          if (!has_quota) return false;
          if (is_single && !zone_in_use.empty() && candidate != zone_in_use) return false;
          const bool is_running = is_bulk && candidate == zone_in_use && name != waiting.front();
          return (is_running || free_slots(candidate) >= need) &&
                 !vms.contains(Place{group.place.project, "zones/" + candidate}.key(name));
        });
    if (zone == group.zones.end()) {
      group.members[name].error =
          wait_reason(group, name, need)
              .value_or(capacity_problem(group.zones, group.template_key, need));
      is_left = true;
      if (is_bulk) break;
      continue;
    }
    if (is_single) zone_in_use = *zone;
    group.members[name].zone = *zone;
    group.members[name].error = nullptr;
    make_vm({.project = group.place.project,
             .zone = *zone,
             .name = name,
             .group = group.key(),
             .template_key = group.template_key,
             .run_seconds = run_seconds});
  }
  if (!is_left) filling_.erase(group.key());
  ++changes;
}

}  // namespace flex::emulator
