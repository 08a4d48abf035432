// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/reading.h"

#include "lib/gce/urls.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace flex {

namespace {

/// How much of a name is not its number: "gpu-" of "gpu-12".
std::string_view stem_of(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name;
}

}  // namespace

bool is_unchanged(const Group& last, const Group& now) {
  return last.name == now.name && last.id == now.id && last.created == now.created &&
         last.target_size == now.target_size && last.is_stable == now.is_stable &&
         last.actions == now.actions && last.description == now.description;
}

Reading what_to_read(const SweptGroup* last, const Group& now) {
  if (last == nullptr || last->readings_due > 0 || !is_unchanged(last->group, now))
    return {.requests = true, .instances = true};
  bool is_any_active = false;
  for (const ResizeRequest& request : last->requests) {
    if (!request.is_active()) continue;
    // It is being made or served: its VMs come.
    if (request.state != RequestState::Accepted) return {.requests = true, .instances = true};
    is_any_active = true;
  }
  if (is_any_active) return {.requests = true, .instances = false};
  // VMs that come one by one have no request.
  if (!now.is_stable) return {.requests = now.kind != GroupKind::Individual, .instances = true};
  return {};
}

bool have_changed(const std::vector<ResizeRequest>& last, const std::vector<ResizeRequest>& now) {
  return !std::equal(
      last.begin(), last.end(), now.begin(), now.end(), [](const auto& left, const auto& right) {
        return left.name == right.name && left.id == right.id && left.state == right.state &&
               left.created == right.created && left.error.has_value() == right.error.has_value();
      });
}

std::size_t spare_readings(std::size_t groups, std::size_t calls) {
  constexpr std::size_t kLeast = 3;
  constexpr std::size_t kRoundsForAll = 20;
  constexpr std::size_t kCheap = 60;  // calls of a round
  const std::size_t wanted = (groups + kRoundsForAll - 1) / kRoundsForAll;
  const std::size_t room = calls < kCheap ? (kCheap - calls) / 2 : 0;
  return std::max(kLeast, std::min(wanted, room));
}

std::string vm_key(const Instance& instance) {
  const std::string_view zone = zone_of(instance.url);
  return zone.empty() ? std::string() : fmt::format("{}/{}", zone, instance.name);
}

std::set<std::string> zones_of(const SweptGroup& group) {
  std::set<std::string> zones;
  for (const Instance& instance : group.instances) {
    if (const std::string_view zone = zone_of(instance.url); !zone.empty()) zones.emplace(zone);
  }
  return zones;
}

bool shows_same(const SweptGroup& group, const VmsByKey& vms) {
  return std::all_of(group.instances.begin(), group.instances.end(), [&](const Instance& entry) {
    const std::string key = vm_key(entry);
    if (key.empty()) return true;
    const auto found = vms.find(key);
    const bool is_there = found != vms.end() && found->second.status != InstanceStatus::Pending;
    const bool is_expected = !entry.is_queued() && entry.status != InstanceStatus::None;
    if (!is_there || !is_expected) return is_there == is_expected;
    const Instance& vm = found->second;
    return vm.status == entry.status && (vm.id.empty() || entry.id.empty() || vm.id == entry.id);
  });
}

std::string pattern_of(const std::set<std::string>& names) {
  constexpr std::size_t kLongest = 500;
  std::set<std::string_view> stems;
  for (const std::string& name : names) stems.insert(stem_of(name));
  std::string joined;
  for (const std::string_view stem : stems) {
    // Names of VMs are letters, digits and '-'; what is not cannot be one.
    if (!joined.empty()) joined += '|';
    joined += stem;
    if (joined.size() > kLongest) return {};
  }
  return joined.empty() ? joined : fmt::format("({})[0-9]*", joined);
}

}  // namespace flex
