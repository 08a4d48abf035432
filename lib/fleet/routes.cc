// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/routes.h"

#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace flex {

namespace {

/// "a" of "us-central1-a", "ai1a" of "us-central1-ai1a".
std::string_view zone_letters(std::string_view zone) {
  const std::size_t dash = zone.rfind('-');
  return dash == std::string_view::npos ? zone : zone.substr(dash + 1);
}

void take_step(Route& route, const StockoutStep& step) {
  if (!step.zones.empty()) route.zones = step.zones;
  if (step.mode) route.mode = *step.mode;
  if (!step.instance_template.empty()) route.instance_template = step.instance_template;
}

std::string joined(const std::string& left, std::string right) {
  return left.empty() ? std::move(right) : left + "-" + right;
}

/// The parts of "projects/P/regions/R/instanceTemplates/T".
struct TemplateName {
  std::string_view project{};  ///< empty: not said
  std::string_view region{};   ///< empty: a global one
  std::string_view name{};
};

TemplateName parse_template(std::string_view text) {
  TemplateName parsed;
  const auto after = [&](std::string_view key) -> std::string_view {
    const std::size_t at = text.find(key);
    if (at == std::string_view::npos || (at > 0 && text[at - 1] != '/')) return {};
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find('/'));
  };
  parsed.project = after("projects/");
  parsed.region = after("regions/");
  parsed.name = text.substr(text.rfind('/') + 1);
  return parsed;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

bool is_same_template(std::string_view left, std::string_view right) {
  const TemplateName one = parse_template(left);
  const TemplateName other = parse_template(right);
  // Google may call a project by its number.
  const bool may_differ = one.project.empty() || other.project.empty() ||
                          is_number(one.project) != is_number(other.project);
  return one.name == other.name && one.region == other.region &&
         (may_differ || one.project == other.project);
}

bool is_made_for(const Group& group, const Route& route) {
  if (group.kind != kind_of(route.mode)) return false;
  if (!group.instance_template.empty() &&
      !is_same_template(group.instance_template, route.instance_template))
    return false;
  return group.zones.empty() || route.zones.empty() || sorted(group.zones) == sorted(route.zones);
}

bool is_outdated(const Group& group, const NodesetConfig& nodeset) {
  for (std::size_t step = 0; step <= nodeset.on_stockout.size(); ++step) {
    for (const Route& route : routes_of(nodeset, step)) {
      if (is_made_for(group, route)) return false;
    }
  }
  return true;
}

std::string other_variant(const Route& route) {
  constexpr std::size_t kDigits = 6;
  const TemplateName name = parse_template(route.instance_template);
  std::vector<std::string> parts = sorted(route.zones);
  parts.insert(parts.begin(), {std::string(name.region), std::string(name.name)});
  return "c" + short_hash(parts, kDigits);
}

std::vector<Route> routes_of(const NodesetConfig& nodeset, std::size_t step) {
  Route route{
      .mode = nodeset.mode, .instance_template = nodeset.instance_template, .zones = nodeset.zones};
  route.step = std::min(step, nodeset.on_stockout.size());
  for (std::size_t i = 0; i < route.step; ++i) take_step(route, nodeset.on_stockout[i]);
  if (route.step > 0) route.variant = fmt::format("s{}", route.step);
  const std::size_t lanes = std::min(nodeset.race, route.zones.size());
  if (lanes < 2 || route.mode != Mode::Queued) return {std::move(route)};
  std::vector<Route> routes;
  for (std::size_t i = 0; i < lanes; ++i) {
    Route lane = route;
    // The last lane has the zones that are left.
    const auto from = route.zones.begin() + static_cast<std::ptrdiff_t>(i);
    lane.zones.assign(from, i + 1 == lanes ? route.zones.end() : from + 1);
    lane.variant = joined(route.variant, fmt::format("z{}", zone_letters(route.zones[i])));
    lane.is_race = true;
    routes.push_back(std::move(lane));
  }
  return routes;
}

GroupKind kind_of(Mode mode) {
  switch (mode) {
    case Mode::Queued:
      return GroupKind::Queued;
    case Mode::Individual:
      return GroupKind::Individual;
    case Mode::BulkInsert:
      return GroupKind::Loose;
  }
  return GroupKind::Queued;
}

bool may_use_bulk(const NodesetConfig& nodeset) {
  return nodeset.mode == Mode::BulkInsert ||
         std::any_of(nodeset.on_stockout.begin(),
                     nodeset.on_stockout.end(),
                     [](const StockoutStep& step) { return step.mode == Mode::BulkInsert; });
}

}  // namespace flex
