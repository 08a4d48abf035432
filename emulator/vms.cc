// SPDX-License-Identifier: GPL-2.0-or-later
// The life of a VM: PROVISIONING, STAGING, RUNNING, and its end.
#include "emulator/world.h"

namespace flex::emulator {

Vm& World::make_vm(const VmSpec& spec) {
  Vm vm{
      .project = spec.project,
      .zone = spec.zone,
      .name = spec.name,
      .id = ++next_id,
      .created = clock.now(),
      .boot_wall = clock.wall() + settings.boot_delay_ms / 2000.0,
      .group = spec.group,
      .template_key = spec.template_key,
      .body = spec.body,
  };
  if (spec.run_seconds > 0) vm.ends = vm.created + static_cast<double>(spec.run_seconds);
  const std::string key = vm.key();
  due_boots_.emplace(vm.boot_wall, key);
  if (vm.ends > 0) due_leases_.emplace(vm.ends, key);
  ++vms_in_zone_[vm.zone];
  ++changes;
  const auto group = groups.find(vm.group);
  history.vm_made(clock, vm, group == groups.end() ? nullptr : &group->second);
  return vms[key] = std::move(vm);
}

namespace {

std::string words_of(VmEnd how) {
  switch (how) {
    case VmEnd::Deleted:
      return "deleted";
    case VmEnd::LeaseOver:
      return "lease over";
    case VmEnd::Vanished:
      return "vanished";
  }
  return {};
}

}  // namespace

void World::boot(Vm& vm) {
  ++changes;
  if (vm.status == VmStatus::Provisioning) {
    vm.status = VmStatus::Staging;
    vm.boot_wall += settings.boot_delay_ms / 2000.0;
    due_boots_.emplace(vm.boot_wall, vm.key());
    return;
  }
  if (vm.status != VmStatus::Staging) return;
  vm.status = VmStatus::Running;
  const auto group = groups.find(vm.group);
  if (group != groups.end()) {
    const auto entry = group->second.members.find(vm.name);
    if (entry != group->second.members.end() && entry->second.action == MemberAction::Creating)
      entry->second.action = MemberAction::None;
  }
  if (settings.boot_failure_names.contains(vm.name) || chance(settings.boot_failure_probability))
    return;  // the VM runs, but what it should start never does
  vm.is_up = true;
  hooks.push_back({.is_up = true,
                   .name = vm.name,
                   .zone = vm.zone,
                   .group = group == groups.end() ? std::string() : group->second.name});
}

void World::end_vm(const std::string& key, VmEnd how) {
  const auto found = vms.find(key);
  if (found == vms.end()) return;
  const Vm vm = std::move(found->second);
  vms.erase(found);
  history.vm_gone(clock, vm, words_of(how));
  due_boots_.erase({vm.boot_wall, key});
  due_leases_.erase({vm.ends, key});
  --vms_in_zone_[vm.zone];
  is_capacity_dirty_ = true;
  ++changes;
  const auto group = groups.find(vm.group);
  if (vm.is_up)
    hooks.push_back({.is_up = false,
                     .name = vm.name,
                     .zone = vm.zone,
                     .group = group == groups.end() ? std::string() : group->second.name});
  if (group == groups.end()) return;
  const auto entry = group->second.members.find(vm.name);
  if (entry == group->second.members.end() || entry->second.action == MemberAction::Deleting)
    return;
  if (how == VmEnd::LeaseOver && !settings.keep_dead_entries) {
    drop_member(group->second, vm.name);
  } else {
    // Repairs are off: the entry stays, with no VM behind it.
    entry->second.action = MemberAction::None;
  }
}

std::int64_t World::count_vms(const std::string& zone) const {
  const auto found = vms_in_zone_.find(zone);
  return found == vms_in_zone_.end() ? 0 : found->second;
}

}  // namespace flex::emulator
