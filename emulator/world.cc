// SPDX-License-Identifier: GPL-2.0-or-later
// Time in the emulated cloud: what is due is done, in order.
#include "emulator/world.h"

#include <algorithm>

namespace flex::emulator {

World::World(Settings initial, std::function<double()> wall)
    : settings(std::move(initial)), clock(std::move(wall)), random_(settings.seed) {}

void World::tick() {
  bool is_busy = true;
  while (is_busy) {
    is_busy = tick_operations();
    is_busy = tick_boots() || is_busy;
    is_busy = tick_leases() || is_busy;
    if (is_capacity_dirty_) {
      is_capacity_dirty_ = false;
      grant();
      is_busy = true;
    }
  }
}

bool World::tick_operations() {
  const double wall = clock.wall();
  bool is_any = false;
  while (!due_operations_.empty() && due_operations_.begin()->first <= wall) {
    const std::string key = due_operations_.begin()->second;
    due_operations_.erase(due_operations_.begin());
    const auto found = operations.find(key);
    if (found == operations.end()) continue;
    finish_operation(found->second);
    is_any = true;
  }
  return is_any;
}

bool World::tick_boots() {
  const double wall = clock.wall();
  bool is_any = false;
  while (!due_boots_.empty() && due_boots_.begin()->first <= wall) {
    const std::string key = due_boots_.begin()->second;
    due_boots_.erase(due_boots_.begin());
    const auto found = vms.find(key);
    if (found == vms.end()) continue;
    boot(found->second);
    is_any = true;
  }
  return is_any;
}

bool World::tick_leases() {
  const double now = clock.now();
  bool is_any = false;
  while (!due_leases_.empty() && due_leases_.begin()->first <= now) {
    const std::string key = due_leases_.begin()->second;
    due_leases_.erase(due_leases_.begin());
    end_vm(key, VmEnd::LeaseOver);
    is_any = true;
  }
  return is_any;
}

std::optional<double> World::next_due() const {
  std::optional<double> next;
  const auto take = [&next](double wall) {
    if (!next || wall < *next) next = wall;
  };
  if (!due_operations_.empty()) take(due_operations_.begin()->first);
  if (!due_boots_.empty()) take(due_boots_.begin()->first);
  if (!due_leases_.empty()) take(clock.to_wall(due_leases_.begin()->first));
  if (is_capacity_dirty_) take(clock.wall());
  return next;
}

void World::reset() {
  for (const auto& [key, group] : groups)
    for (const auto& [name, request] : group.requests)
      if (request.is_active()) history.request_ended(clock, group, request);
  for (const auto& [key, vm] : vms) {
    history.vm_gone(clock, vm, "reset");
    if (!vm.is_up) continue;
    const auto group = groups.find(vm.group);
    hooks.push_back({.is_up = false,
                     .name = vm.name,
                     .zone = vm.zone,
                     .group = group == groups.end() ? std::string() : group->second.name});
  }
  groups.clear();
  vms.clear();
  operations.clear();
  templates.clear();
  policies.clear();
  rebuild();
  ++changes;
}

void World::rebuild() {
  due_operations_.clear();
  due_boots_.clear();
  due_leases_.clear();
  vms_in_zone_.clear();
  active_requests_.clear();
  waiting_.clear();
  filling_.clear();
  blocked_.clear();
  finished_.clear();
  finished_from_ = 0;
  for (const auto& [key, operation] : operations) {
    if (operation.status == OperationStatus::Done) {
      finished_.push_back(key);
    } else {
      due_operations_.emplace(operation.due_wall, key);
    }
  }
  std::sort(finished_.begin(), finished_.end(), [this](const auto& a, const auto& b) {
    return operations.at(a).id < operations.at(b).id;
  });
  for (const auto& [key, vm] : vms) {
    ++vms_in_zone_[vm.zone];
    if (vm.status == VmStatus::Provisioning || vm.status == VmStatus::Staging)
      due_boots_.emplace(vm.boot_wall, key);
    if (vm.ends > 0) due_leases_.emplace(vm.ends, key);
  }
  for (const auto& [key, group] : groups) {
    for (const auto& [name, request] : group.requests) index_request(group, request);
    const bool has_waiting =
        std::any_of(group.members.begin(), group.members.end(), [](const auto& entry) {
          return entry.second.request.empty() && entry.second.zone.empty() &&
                 entry.second.action == MemberAction::Creating;
        });
    if (has_waiting && group.is_ready) filling_.insert(key);
  }
  is_capacity_dirty_ = true;
}

void World::index_request(const Group& group, const Request& request) {
  if (!request.is_active()) return;
  const std::string location = group.place.location();
  const std::string region = group.place.is_regional() ? location : region_of(location);
  ++active_requests_[group.place.project + "/" + region];
  if (request.state == RequestState::Accepted) waiting_[request.id] = {group.key(), request.name};
}

std::string World::region_of(const std::string& zone) const {
  for (const auto& [region, zones] : settings.regions)
    if (std::find(zones.begin(), zones.end(), zone) != zones.end()) return region;
  return zone.substr(0, zone.rfind('-'));
}

bool World::is_zone(const std::string& zone) const {
  return std::any_of(settings.regions.begin(), settings.regions.end(), [&zone](const auto& entry) {
    return std::find(entry.second.begin(), entry.second.end(), zone) != entry.second.end();
  });
}

bool World::is_region(const std::string& region) const {
  return settings.regions.contains(region);
}

std::string World::random_suffix(std::size_t length) {
  constexpr std::string_view kDigits = "0123456789bcdfghjklmnpqrstvwxz";
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += kDigits[random_() % kDigits.size()];
  return text;
}

bool World::chance(double probability) {
  return probability > 0 && std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

Json error_json(const std::string& code, const std::string& message) {
  return Json{{"errors", Json::array({Json{{"code", code}, {"message", message}}})}};
}

std::string_view to_string(VmStatus status) {
  switch (status) {
    case VmStatus::Pending:
      return "PENDING";
    case VmStatus::Provisioning:
      return "PROVISIONING";
    case VmStatus::Staging:
      return "STAGING";
    case VmStatus::Running:
      return "RUNNING";
    case VmStatus::Stopping:
      return "STOPPING";
  }
  return "RUNNING";
}

std::string_view to_string(RequestState state) {
  switch (state) {
    case RequestState::Creating:
      return "CREATING";
    case RequestState::Accepted:
      return "ACCEPTED";
    case RequestState::Succeeded:
      return "SUCCEEDED";
    case RequestState::Failed:
      return "FAILED";
    case RequestState::Cancelled:
      return "CANCELLED";
  }
  return "STATE_UNSPECIFIED";
}

std::string_view to_string(OperationStatus status) {
  switch (status) {
    case OperationStatus::Pending:
      return "PENDING";
    case OperationStatus::Running:
      return "RUNNING";
    case OperationStatus::Done:
      return "DONE";
  }
  return "DONE";
}

std::string_view to_string(MemberAction action) {
  switch (action) {
    case MemberAction::None:
      return "NONE";
    case MemberAction::Creating:
      return "CREATING";
    case MemberAction::Deleting:
      return "DELETING";
  }
  return "NONE";
}

}  // namespace flex::emulator
