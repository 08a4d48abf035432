// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/routes.h"

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

}  // namespace

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
