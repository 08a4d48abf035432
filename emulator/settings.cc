// SPDX-License-Identifier: GPL-2.0-or-later
// Settings from and to JSON.
#include "emulator/settings.h"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

namespace flex::emulator {

namespace {

using Problem = std::optional<std::string>;
using Setter = std::function<bool(Settings&, const Json&)>;

bool set_number(double& target, const Json& value) {
  if (!value.is_number() || value.get<double>() < 0) return false;
  target = value.get<double>();
  return true;
}

bool set_flag(bool& target, const Json& value) {
  if (!value.is_boolean()) return false;
  target = value.get<bool>();
  return true;
}

bool set_text(std::string& target, const Json& value) {
  if (!value.is_string()) return false;
  target = value.get<std::string>();
  return true;
}

/// Merges key by key; null removes a key.
template <class T>
bool merge_numbers(std::map<std::string, T>& target, const Json& value) {
  if (!value.is_object()) return false;
  std::map<std::string, T> merged = target;
  for (const auto& [key, item] : value.items()) {
    if (item.is_null()) {
      merged.erase(key);
    } else if (item.is_number()) {
      merged[key] = static_cast<const Json&>(item).template get<T>();
    } else {
      return false;
    }
  }
  target = std::move(merged);
  return true;
}

template <class Container>
bool set_texts(Container& target, const Json& value) {
  if (value.is_null()) {
    target.clear();
    return true;
  }
  if (!value.is_array()) return false;
  Container read;
  for (const Json& item : value) {
    if (!item.is_string()) return false;
    read.insert(read.end(), item.get<std::string>());
  }
  target = std::move(read);
  return true;
}

bool set_boot_failure(Settings& settings, const Json& value) {
  if (value.is_array()) return set_texts(settings.boot_failure_names, value);
  if (!value.is_number() || value.get<double>() < 0 || value.get<double>() > 1) return false;
  settings.boot_failure_probability = value.get<double>();
  if (settings.boot_failure_probability == 0) settings.boot_failure_names.clear();
  return true;
}

constexpr std::pair<std::string_view, QueuedStatus> kQueuedWords[] = {
    {"none", QueuedStatus::None},
    {"pending", QueuedStatus::Pending},
    {"mixed", QueuedStatus::Mixed},
};

bool set_queued_status(Settings& settings, const Json& value) {
  if (!value.is_string()) return false;
  for (const auto& [word, status] : kQueuedWords) {
    if (value.get_ref<const std::string&>() != word) continue;
    settings.queued_status = status;
    return true;
  }
  return false;
}

std::string_view to_string(QueuedStatus wanted) {
  for (const auto& [word, status] : kQueuedWords)
    if (status == wanted) return word;
  return {};
}

bool set_regions(Settings& settings, const Json& value) {
  if (!value.is_object()) return false;
  auto regions = settings.regions;
  for (const auto& [region, zones] : value.items())
    if (!set_texts(regions[region], zones)) return false;
  settings.regions = std::move(regions);
  return true;
}

bool set_machine_types(Settings& settings, const Json& value) {
  if (!value.is_object()) return false;
  auto types = settings.machine_types;
  for (const auto& [zone, names] : value.items()) {
    if (names.is_null())
      types.erase(zone);
    else if (!set_texts(types[zone], names))
      return false;
  }
  settings.machine_types = std::move(types);
  return true;
}

bool set_skew(Settings& settings, const Json& value) {
  if (!value.is_number()) return false;
  settings.clock_skew_seconds = value.get<double>();
  return true;
}

bool set_templates(Settings& settings, const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& item : value)
    if (text_of(item, "name").empty()) return false;
  settings.templates = value;
  return true;
}

bool set_seed(Settings& settings, const Json& value) {
  if (!value.is_number_unsigned()) return false;
  settings.seed = value.get<std::uint64_t>();
  return true;
}

const std::map<std::string, Setter>& setters() {
  using S = Settings;
  static const std::map<std::string, Setter> table{
      {"latency_ms", [](S& s, const Json& v) { return set_number(s.latency_ms, v); }},
      {"latency_by_method",
       [](S& s, const Json& v) { return merge_numbers(s.latency_by_method, v); }},
      {"operation_ms", [](S& s, const Json& v) { return set_number(s.operation_ms, v); }},
      {"operation_by_method",
       [](S& s, const Json& v) { return merge_numbers(s.operation_by_method, v); }},
      {"boot_delay_ms", [](S& s, const Json& v) { return set_number(s.boot_delay_ms, v); }},
      {"capacity", [](S& s, const Json& v) { return merge_numbers(s.capacity, v); }},
      {"quota", [](S& s, const Json& v) { return merge_numbers(s.quota, v); }},
      {"eta_seconds", [](S& s, const Json& v) { return set_number(s.eta_seconds, v); }},
      {"boot_failure", set_boot_failure},
      {"keep_dead_entries", [](S& s, const Json& v) { return set_flag(s.keep_dead_entries, v); }},
      {"queued_status", set_queued_status},
      {"hook", [](S& s, const Json& v) { return set_texts(s.hook, v); }},
      {"strict_tokens", [](S& s, const Json& v) { return set_flag(s.strict_tokens, v); }},
      {"projects", [](S& s, const Json& v) { return set_texts(s.projects, v); }},
      {"regions", set_regions},
      {"zones_down", [](S& s, const Json& v) { return set_texts(s.zones_down, v); }},
      {"machine_types", set_machine_types},
      {"denied_permissions",
       [](S& s, const Json& v) { return set_texts(s.denied_permissions, v); }},
      {"lacks_scopes", [](S& s, const Json& v) { return set_flag(s.lacks_scopes, v); }},
      {"clock_skew_seconds", set_skew},
      {"auto_templates", [](S& s, const Json& v) { return set_flag(s.auto_templates, v); }},
      {"templates", set_templates},
      {"project", [](S& s, const Json& v) { return set_text(s.project, v); }},
      {"zone", [](S& s, const Json& v) { return set_text(s.zone, v); }},
      {"token_seconds", [](S& s, const Json& v) { return set_number(s.token_seconds, v); }},
      {"seed", set_seed},
  };
  return table;
}

}  // namespace

Settings::Settings() {
  for (const char* region : {"us-central1", "us-east4", "us-west1", "europe-west4"}) {
    std::vector<std::string>& zones = regions[region];
    for (const char* letter : {"a", "b", "c", "f"})
      zones.push_back(fmt::format("{}-{}", region, letter));
  }
}

Problem apply_settings(Settings& settings, const Json& change, std::optional<double>& factor) {
  if (!change.is_object()) return "the configuration must be a JSON object";
  Settings changed = settings;
  for (const auto& [key, value] : change.items()) {
    if (key == "time_factor") {
      if (!value.is_number() || value.get<double>() <= 0) return "time_factor must be above 0";
      factor = value.get<double>();
      continue;
    }
    const auto setter = setters().find(key);
    if (setter == setters().end()) return fmt::format("unknown key '{}'", key);
    if (!setter->second(changed, value))
      return fmt::format("bad value for '{}': {}", key, value.dump());
  }
  settings = std::move(changed);
  return std::nullopt;
}

bool says_pending(QueuedStatus status, std::string_view name) {
  if (status != QueuedStatus::Mixed) return status == QueuedStatus::Pending;
  const auto sum = std::accumulate(name.begin(), name.end(), 0U, [](unsigned total, char letter) {
    return total + static_cast<unsigned char>(letter);
  });
  return sum % 2 == 1;
}

Json to_json(const Settings& s, double factor) {
  return Json{
      {"latency_ms", s.latency_ms},
      {"latency_by_method", s.latency_by_method},
      {"operation_ms", s.operation_ms},
      {"operation_by_method", s.operation_by_method},
      {"boot_delay_ms", s.boot_delay_ms},
      {"capacity", s.capacity},
      {"quota", s.quota},
      {"eta_seconds", s.eta_seconds},
      {"boot_failure",
       s.boot_failure_names.empty() ? Json(s.boot_failure_probability)
                                    : Json(s.boot_failure_names)},
      {"keep_dead_entries", s.keep_dead_entries},
      {"queued_status", to_string(s.queued_status)},
      {"hook", s.hook},
      {"strict_tokens", s.strict_tokens},
      {"projects", s.projects},
      {"regions", s.regions},
      {"zones_down", s.zones_down},
      {"machine_types", s.machine_types},
      {"denied_permissions", s.denied_permissions},
      {"lacks_scopes", s.lacks_scopes},
      {"clock_skew_seconds", s.clock_skew_seconds},
      {"auto_templates", s.auto_templates},
      {"templates", s.templates},
      {"project", s.project},
      {"zone", s.zone},
      {"token_seconds", s.token_seconds},
      {"seed", s.seed},
      {"time_factor", factor},
  };
}

}  // namespace flex::emulator
