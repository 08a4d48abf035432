// SPDX-License-Identifier: GPL-2.0-or-later
// VMs of no group: all in one zone, at least as many as were asked for, or none.
#include "emulator/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

/// What came of a zone, as a bulkInsert reports it.
struct Attempt {
  std::string zone{};
  std::vector<std::string> names{};  ///< that can be made there
  std::string clash{};               ///< path of a VM that has one of the names
};

Attempt try_zone(const World& world, const Operation& operation, const std::string& zone) {
  Attempt attempt{.zone = zone};
  const Place place{operation.place.project, "zones/" + zone};
  const std::int64_t room = world.free_slots(zone);
  for (const std::string& name : operation.names) {
    if (world.vms.contains(place.key(name)))
      attempt.clash = fmt::format("projects/{}/{}/instances/{}", place.project, place.scope, name);
    else if (static_cast<std::int64_t>(attempt.names.size()) < room)
      attempt.names.push_back(name);
  }
  return attempt;
}

Json location_status(const Attempt& attempt, std::size_t wanted, bool is_kept) {
  Json status{{"status", "DONE"},
              {"targetVmCount", wanted},
              {"createdVmCount", attempt.names.size()},
              {"failedToCreateVmCount", wanted - attempt.names.size()}};
  if (!is_kept) status["deletedVmCount"] = attempt.names.size();
  return Json{{"perLocationStatus", {{"zones/" + attempt.zone, std::move(status)}}}};
}

/// The sum comes first, then the cause.
Json min_count_error(std::int64_t least, const Json& cause) {
  Json error =
      error_json("VM_MIN_COUNT_NOT_REACHED",
                 fmt::format("Requested minimum count of {} VMs could not be created.", least));
  for (const Json& item : member(cause, "errors")) error["errors"].push_back(item);
  return error;
}

}  // namespace

std::int64_t World::within_quota(const Operation& operation,
                                 std::int64_t least,
                                 std::int64_t wanted) const {
  const Json& zones = member(operation.plan, "zones");
  const std::string region = zones.empty() ? "" : region_of(zones.front().get<std::string>());
  const std::string key = text_of(operation.plan, "template");
  std::int64_t count = wanted;
  while (count >= least && quota_problem(operation.place.project, region, key, count)) --count;
  return count;
}

void World::place_vms(Operation& operation) {
  const Json& plan = operation.plan;
  const auto wanted = static_cast<std::int64_t>(operation.names.size());
  const std::int64_t least = int_of(member(plan, "min")).value_or(wanted);
  const std::string key = text_of(plan, "template");
  const bool is_bulk = flag_of(plan, "bulk");
  std::vector<std::string> zones;
  for (const Json& zone : member(plan, "zones")) zones.push_back(zone.get<std::string>());
  // The zone that takes most, the first of several.
  Attempt best;
  std::string clash;
  for (const std::string& zone : zones) {
    Attempt attempt = try_zone(*this, operation, zone);
    if (!attempt.clash.empty()) clash = attempt.clash;
    if (best.zone.empty() || attempt.names.size() > best.names.size()) best = std::move(attempt);
  }
  const std::int64_t allowed = within_quota(operation, least, wanted);
  if (static_cast<std::int64_t>(best.names.size()) > allowed)
    best.names.resize(static_cast<std::size_t>(std::max<std::int64_t>(allowed, 0)));
  const auto made = static_cast<std::int64_t>(best.names.size());
  const bool is_kept = made >= std::max<std::int64_t>(least, 1);
  if (is_bulk) operation.metadata = location_status(best, operation.names.size(), is_kept);
  if (!is_kept) {
    Json cause;
    if (allowed < least)
      cause = *quota_problem(operation.place.project, region_of(best.zone), key, least);
    else if (!clash.empty())
      cause = error_json("RESOURCE_ALREADY_EXISTS",
                         fmt::format("The resource '{}' already exists", clash));
    else
      cause = capacity_problem(zones, key, least);
    operation.error = is_bulk ? min_count_error(least, cause) : cause;
    return;
  }
  for (const std::string& name : best.names)
    make_vm({.project = operation.place.project,
             .zone = best.zone,
             .name = name,
             .template_key = key,
             .run_seconds = int_of(member(plan, "run_seconds")).value_or(0),
             .body = member(plan, "body")});
}

}  // namespace flex::emulator
