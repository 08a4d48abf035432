// SPDX-License-Identifier: GPL-2.0-or-later
// Capacity of zones and quota of regions, and how Google words their lack.
#include "emulator/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace flex::emulator {

namespace {

/// "nvidia-h100-80gb" counts against PREEMPTIBLE_NVIDIA_H100_GPUS, the 80 GB A100 has its own.
std::string gpu_metric(std::string type) {
  type = type.substr(type.rfind('/') + 1);
  const std::size_t tesla = type.find("tesla-");
  if (tesla != std::string::npos) type.erase(tesla, 6);
  const std::size_t size = type.rfind('-');
  if (type.ends_with("gb") && type.find("a100") == std::string::npos) type.erase(size);
  std::string metric = "PREEMPTIBLE_";
  for (const char c : type)
    metric += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return metric + "_GPUS";
}

/// How much of `metric` one VM of the template uses.
std::int64_t need_of(const std::map<std::string, Thing>& templates,
                     const std::string& template_key,
                     const std::string& metric) {
  if (metric == "INSTANCES") return 1;
  const auto found = templates.find(template_key);
  if (found == templates.end()) return 0;
  std::int64_t need = 0;
  for (const Json& gpu : member(member(found->second.body, "properties"), "guestAccelerators"))
    if (gpu_metric(text_of(gpu, "acceleratorType")) == metric)
      need += int_of(member(gpu, "acceleratorCount")).value_or(1);
  return need;
}

std::string machine_type(const std::map<std::string, Thing>& templates, const std::string& key) {
  const auto found = templates.find(key);
  if (found == templates.end()) return "a3-ultragpu-8g";
  return text_of(member(found->second.body, "properties"), "machineType", "a3-ultragpu-8g");
}

}  // namespace

std::int64_t World::free_slots(const std::string& zone) const {
  const auto limit = settings.capacity.find(zone);
  if (limit == settings.capacity.end() || limit->second < 0)
    return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(0, limit->second - count_vms(zone));
}

std::optional<Json> World::quota_problem(const std::string& project,
                                         const std::string& region,
                                         const std::string& template_key,
                                         std::int64_t count) const {
  for (const auto& [metric, limit] : settings.quota) {
    if (metric == "ACTIVE_RESIZE_REQUESTS" || limit < 0) continue;
    const std::int64_t need = need_of(templates, template_key, metric) * count;
    if (need == 0) continue;
    std::int64_t usage = 0;
    for (const auto& [key, vm] : vms)
      if (vm.project == project && region_of(vm.zone) == region)
        usage += need_of(templates, vm.template_key, metric);
    if (usage + need <= limit) continue;
    Json error = error_json(
        "QUOTA_EXCEEDED",
        fmt::format("Quota '{}' exceeded.  Limit: {}.0 in region {}.", metric, limit, region));
    error["errors"][0]["errorDetails"] =
        Json::array({Json{{"quotaInfo",
                           {{"metricName", "compute.googleapis.com/" + metric},
                            {"limitName", metric},
                            {"limit", static_cast<double>(limit)},
                            {"dimensions", {{"region", region}}}}}}});
    return error;
  }
  return std::nullopt;
}

Json World::capacity_problem(const std::vector<std::string>& zones,
                             const std::string& template_key,
                             std::int64_t count) const {
  // The earliest lease end after which one of the zones takes them all.
  double estimate = 0;
  for (const std::string& zone : zones) {
    const auto limit = settings.capacity.find(zone);
    if (limit == settings.capacity.end() || limit->second < count) continue;
    const std::int64_t missing = count - free_slots(zone);
    std::int64_t freed = 0;
    for (const auto& [ends, key] : due_leases_) {
      const auto vm = vms.find(key);
      if (vm == vms.end() || vm->second.zone != zone || ++freed < missing) continue;
      const double wall = clock.to_wall(ends);
      estimate = estimate == 0 ? wall : std::min(estimate, wall);
      break;
    }
  }
  if (estimate == 0) estimate = clock.to_wall(clock.now() + settings.eta_seconds);
  const std::string zone = zones.empty() ? std::string() : zones.front();
  const std::string type = machine_type(templates, template_key);
  Json error = error_json(
      "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
      fmt::format("The zone '{}' does not have enough resources available to fulfill the request, "
                  "'(resource type:compute)'. {} VMs of type {} are waiting for capacity.",
                  zone,
                  count,
                  type));
  error["errors"][0]["errorDetails"] =
      Json::array({Json{{"errorInfo",
                         {{"reason", "resource_availability"},
                          {"domain", "compute.googleapis.com"},
                          {"metadatas",
                           {{"vmType", type},
                            {"attachment", ""},
                            {"zone", zone},
                            {"zonesAvailable", ""},
                            {"estimatedAvailabilityTime", format_utc(estimate)}}}}}}});
  return error;
}

}  // namespace flex::emulator
