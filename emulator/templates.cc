// SPDX-License-Identifier: GPL-2.0-or-later
// Instance templates: which one a URL names, and those that the settings declare.
#include "emulator/shapes.h"
#include "emulator/world.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

Json properties_of(const Json& declared) {
  if (declared.contains("properties")) return declared.at("properties");
  const std::int64_t run_seconds = int_of(member(declared, "max_run_duration")).value_or(604800);
  Json properties{
      {"machineType", text_of(declared, "machine_type", "a3-ultragpu-8g")},
      {"scheduling",
       {{"provisioningModel", text_of(declared, "provisioning_model", "FLEX_START")},
        {"maxRunDuration", {{"seconds", std::to_string(run_seconds)}}},
        {"instanceTerminationAction", "DELETE"},
        {"onHostMaintenance", "TERMINATE"},
        {"automaticRestart", false}}},
      {"reservationAffinity", {{"consumeReservationType", "NO_RESERVATION"}}},
  };
  if (declared.contains("accelerator_type"))
    properties["guestAccelerators"] = Json::array(
        {Json{{"acceleratorType", declared.at("accelerator_type")},
              {"acceleratorCount", int_of(member(declared, "accelerator_count")).value_or(1)}}});
  return properties;
}

/// Where a name, partial or full URL points to.
std::optional<std::pair<Place, std::string>> locate(const std::string& project,
                                                    const std::string& url) {
  const std::vector<std::string> parts = split_path(url);
  if (parts.empty()) return std::nullopt;
  Place place{project, "global"};
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i] == "projects") place.project = parts[i + 1];
    if (parts[i] == "regions") place.scope = "regions/" + parts[i + 1];
  }
  return std::pair{place, parts.back()};
}

}  // namespace

std::optional<std::string> World::find_template(const std::string& project,
                                                const std::string& url) {
  const auto where = locate(project, url);
  if (!where) return std::nullopt;
  const auto& [place, name] = *where;
  const std::string key = place.key(name);
  if (templates.contains(key)) return key;
  const auto& list = settings.templates;
  const auto declared = std::find_if(list.begin(), list.end(), [&name = name](const Json& item) {
    return text_of(item, "name") == name;
  });
  if (declared == list.end() && !settings.auto_templates) return std::nullopt;
  Thing thing{.place = place, .name = name, .id = ++next_id, .created = clock.now()};
  thing.body =
      Json{{"name", name},
           {"properties", properties_of(declared == list.end() ? Json::object() : *declared)}};
  templates[key] = std::move(thing);
  ++changes;
  return key;
}

void World::declare_templates(const std::string& project) {
  for (const Json& item : Json(settings.templates))
    static_cast<void>(find_template(project, text_of(item, "name")));
}

}  // namespace flex::emulator
