// SPDX-License-Identifier: GPL-2.0-or-later
// Long-running operations: started by a write, they take effect when they end.
#include "emulator/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

/// Ended operations kept for reading; Google keeps them for days, tests for minutes.
constexpr std::size_t kKeptOperations = 20000;

std::string zone_of_member(const Group& group, const std::string& name) {
  const auto found = group.members.find(name);
  return found == group.members.end() ? std::string() : found->second.zone;
}

}  // namespace

Operation& World::start_operation(OperationSpec spec, const std::string& method) {
  const auto special = settings.operation_by_method.find(method);
  const double millis =
      special == settings.operation_by_method.end() ? settings.operation_ms : special->second;
  Operation operation{
      .place = std::move(spec.place),
      .id = ++next_id,
      .type = std::move(spec.type),
      .target = std::move(spec.target),
      .target_id = spec.target_id,
      .inserted = clock.now(),
      .due_wall = clock.wall() + millis / 1000.0,
      .effect = spec.effect,
      .subject = std::move(spec.subject),
      .request = std::move(spec.request),
      .names = std::move(spec.names),
  };
  operation.name = fmt::format("operation-{:013}-{:013x}-{:08x}-{:08x}",
                               static_cast<std::uint64_t>(clock.wall() * 1000.0),
                               operation.id,
                               random_() & 0xffffffffU,
                               random_() & 0xffffffffU);
  const std::string key = operation.key();
  due_operations_.emplace(operation.due_wall, key);
  ++changes;
  return operations[key] = std::move(operation);
}

void World::finish_operation(Operation& operation) {
  if (operation.status == OperationStatus::Done) return;
  if (operation.effect == Effect::GroupGone && operation.fault.is_null()) {
    const auto group = groups.find(operation.subject);
    const bool is_waiting = group != groups.end() &&
                            std::any_of(group->second.requests.begin(),
                                        group->second.requests.end(),
                                        [](const auto& entry) { return entry.second.is_active(); });
    if (is_waiting) {
      blocked_.insert(operation.key());
      return;
    }
  }
  operation.status = OperationStatus::Done;
  operation.ended = clock.now();
  if (operation.fault.is_null()) {
    apply_effect(operation);
  } else {
    operation.error = operation.fault;
    undo_effect(operation);
  }
  finished_.push_back(operation.key());
  ++changes;
  forget_old_operations();
}

void World::forget_old_operations() {
  while (finished_.size() - finished_from_ > kKeptOperations)
    operations.erase(finished_[finished_from_++]);
  if (finished_from_ > kKeptOperations) {
    finished_.erase(finished_.begin(),
                    finished_.begin() + static_cast<std::ptrdiff_t>(finished_from_));
    finished_from_ = 0;
  }
}

void World::apply_effect(Operation& operation) {
  const auto found = groups.find(operation.subject);
  Group* group = found == groups.end() ? nullptr : &found->second;
  Request* request = nullptr;
  if (group != nullptr) {
    const auto entry = group->requests.find(operation.request);
    if (entry != group->requests.end()) request = &entry->second;
  }
  switch (operation.effect) {
    case Effect::None:
      break;
    case Effect::GroupReady:
      if (group == nullptr) break;
      group->is_ready = true;
      if (!group->members.empty()) fill_group(group->key());
      break;
    case Effect::GroupGone:
      remove_group(operation.subject);
      break;
    case Effect::RequestAccepted:
      if (request == nullptr) break;
      accept_request(*group, *request);
      if (!operation.request_fault.is_null())
        end_request(*group, *request, RequestState::Failed, operation.request_fault);
      break;
    case Effect::RequestCancelled:
      if (request != nullptr) end_request(*group, *request, RequestState::Cancelled, {});
      break;
    case Effect::RequestGone:
      if (group != nullptr) group->requests.erase(operation.request);
      break;
    case Effect::MembersGone:
      remove_members(operation);
      break;
    case Effect::GroupFill:
      if (group != nullptr) fill_group(group->key());
      break;
    case Effect::VmsPlaced:
      place_vms(operation);
      break;
    case Effect::VmGone:
      end_vm(operation.subject, VmEnd::Deleted);
      break;
    case Effect::ThingMade:
      break;
    case Effect::ThingGone:
      things(operation.request).erase(operation.subject);
      break;
  }
}

void World::undo_effect(Operation& operation) {
  if (operation.effect == Effect::VmGone) {
    const auto vm = vms.find(operation.subject);
    if (vm != vms.end()) vm->second.status = VmStatus::Running;
  } else if (operation.effect == Effect::ThingMade) {
    things(operation.request).erase(operation.subject);
  }
  const auto found = groups.find(operation.subject);
  if (found == groups.end()) return;
  Group& group = found->second;
  if (operation.effect == Effect::GroupReady) {
    remove_group(operation.subject);
  } else if (operation.effect == Effect::GroupGone) {
    group.is_deleting = false;
  } else if (operation.effect == Effect::RequestAccepted) {
    const auto request = group.requests.find(operation.request);
    if (request == group.requests.end()) return;
    end_request(group, request->second, RequestState::Failed, operation.error);
    group.requests.erase(operation.request);  // its creation failed: it never was
  } else if (operation.effect == Effect::RequestCancelled) {
    const auto request = group.requests.find(operation.request);
    if (request != group.requests.end()) request->second.is_cancelling = false;
    is_capacity_dirty_ = true;
  } else if (operation.effect == Effect::MembersGone) {
    for (const std::string& name : operation.names) {
      const auto entry = group.members.find(name);
      if (entry == group.members.end()) continue;
      entry->second.action =
          entry->second.zone.empty() ? MemberAction::Creating : MemberAction::None;
      const auto vm = vms.find(Place{group.place.project, "zones/" + entry->second.zone}.key(name));
      if (vm != vms.end()) vm->second.status = VmStatus::Running;
      ++group.target_size;
    }
    fill_group(group.key());
  } else if (operation.effect == Effect::GroupFill) {
    for (const std::string& name : operation.names) {
      const auto entry = group.members.find(name);
      if (entry != group.members.end() && entry->second.zone.empty()) drop_member(group, name);
    }
  }
}

std::map<std::string, Thing>& World::things(const std::string& collection) {
  return collection == "resourcePolicies" ? policies : templates;
}

void World::remove_members(Operation& operation) {
  const auto found = groups.find(operation.subject);
  if (found == groups.end()) return;
  Group& group = found->second;
  for (const std::string& name : operation.names) {
    const auto entry = group.members.find(name);
    if (entry == group.members.end() || entry->second.action != MemberAction::Deleting) continue;
    const std::string zone = zone_of_member(group, name);
    if (!zone.empty())
      end_vm(Place{group.place.project, "zones/" + zone}.key(name), VmEnd::Deleted);
    group.members.erase(name);  // the target size went down with the call
  }
}

void World::remove_group(const std::string& key) {
  const auto found = groups.find(key);
  if (found == groups.end()) return;
  std::vector<std::string> keys;
  for (const auto& [name, entry] : found->second.members)
    if (!entry.zone.empty())
      keys.push_back(Place{found->second.place.project, "zones/" + entry.zone}.key(name));
  for (const std::string& vm : keys) end_vm(vm, VmEnd::Deleted);
  for (auto& [name, request] : found->second.requests)
    if (request.is_active()) end_request(found->second, request, RequestState::Cancelled, {});
  filling_.erase(key);
  groups.erase(found);
  ++changes;
}

}  // namespace flex::emulator
