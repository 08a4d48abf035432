// SPDX-License-Identifier: GPL-2.0-or-later
// Machine types: what a zone has, and what is in them.
#include "emulator/api.h"

#include <algorithm>
#include <array>

namespace flex::emulator {

namespace {

struct Machine {
  std::string_view name;
  std::int64_t cpus;
  std::int64_t memory_gb;
  std::string_view accelerator;  ///< empty: none, or as the VM's own template says
  std::int64_t count;
};

constexpr std::array<Machine, 12> kMachines{{
    {"a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1},
    {"a2-highgpu-8g", 96, 680, "nvidia-tesla-a100", 8},
    {"a2-ultragpu-8g", 96, 1360, "nvidia-a100-80gb", 8},
    {"a3-highgpu-8g", 208, 1872, "nvidia-h100-80gb", 8},
    {"a3-megagpu-8g", 208, 1872, "nvidia-h100-mega-80gb", 8},
    {"a3-ultragpu-8g", 224, 2952, "nvidia-h200-141gb", 8},
    {"a4-highgpu-8g", 224, 3968, "nvidia-b200", 8},
    {"a4x-highgpu-4g", 140, 884, "nvidia-gb200", 4},
    {"g2-standard-4", 4, 16, "nvidia-l4", 1},
    {"h4d-standard-192", 192, 720, "", 0},
    {"n1-standard-1", 1, 4, "", 0},
    {"n2-standard-4", 4, 16, "", 0},
}};

Json machine_json(const Machine& machine, const Place& place) {
  const std::string name(machine.name);
  Json json{{"kind", "compute#machineType"},
            {"id", "3001"},
            {"name", name},
            {"guestCpus", machine.cpus},
            {"memoryMb", machine.memory_gb * 1024},
            {"zone", place.location()},
            {"selfLink", url_of(path_of(place, "machineTypes", name))}};
  if (machine.count > 0)
    json["accelerators"] = Json::array({Json{{"guestAcceleratorType", machine.accelerator},
                                             {"guestAcceleratorCount", machine.count}}});
  return json;
}

/// A zone that the settings do not speak of has all of them.
bool has_machine(const World& world, const std::string& zone, std::string_view name) {
  const auto limited = world.settings.machine_types.find(zone);
  return limited == world.settings.machine_types.end() ||
         limited->second.contains(std::string(name));
}

}  // namespace

Reply machine_types_get(World& world, const Call& call) {
  const std::string name = call.param("machineType");
  const Place place = call.place();
  const auto* const found = std::find_if(kMachines.begin(),
                                         kMachines.end(),
                                         [&](const auto& machine) { return machine.name == name; });
  if (!world.is_zone(place.location()) || found == kMachines.end() ||
      !has_machine(world, place.location(), name))
    return not_found(path_of(place, "machineTypes", name));
  return {.status = 200, .body = machine_json(*found, place)};
}

Reply machine_types_list(World& world, const Call& call) {
  std::vector<Json> items;
  for (const Machine& machine : kMachines)
    if (has_machine(world, call.place().location(), machine.name))
      items.push_back(machine_json(machine, call.place()));
  return list_reply(world, call, "compute#machineTypeList", std::move(items));
}

Reply machine_types_aggregated(World& world, const Call& call) {
  std::vector<std::pair<std::string, Json>> items;
  for (const auto& [region, zones] : world.settings.regions)
    for (const std::string& zone : zones)
      for (const Machine& machine : kMachines)
        if (has_machine(world, zone, machine.name))
          items.emplace_back("zones/" + zone,
                             machine_json(machine, Place{call.project(), "zones/" + zone}));
  return aggregated_reply(
      world, call, "compute#machineTypeAggregatedList", std::move(items), "machineTypes");
}

}  // namespace flex::emulator
