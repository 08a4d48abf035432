// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"
#include "sweeper/status_parts.h"
#include "sweeper/words.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

namespace flex::status {

namespace {

const NodesetConfig* find_nodeset(const Config& config, const std::string& name) {
  const auto found = std::find_if(config.nodesets.begin(),
                                  config.nodesets.end(),
                                  [&](const NodesetConfig& set) { return set.name == name; });
  return found == config.nodesets.end() ? nullptr : &*found;
}

/// The zones that are asked: of a race, those of the lane whose mark is in the group's name.
std::vector<std::string> zones_of(const NodesetConfig& set,
                                  std::size_t step,
                                  const std::string& group) {
  const std::vector<Route> routes = routes_of(set, step);
  const auto lane = std::find_if(routes.begin(), routes.end(), [&](const Route& route) {
    return route.is_race && (group + "-").find("-" + route.variant + "-") != std::string::npos;
  });
  if (lane != routes.end()) return lane->zones;
  return routes.size() == 1 ? routes.front().zones : set.zones;
}

/// When the first of those who wait for it will wait no longer.
std::optional<TimePoint> gives_up(const Look& look,
                                  const NodesetConfig& set,
                                  const ResizeRequest& request) {
  std::optional<TimePoint> first;
  for (const Job* job : jobs_on(look.picture, request.nodes)) {
    const Patience patience = patience_of(set, *job);
    if (patience.limit == Seconds{0}) continue;
    const TimePoint end = began_to_wait(request, *job) + patience.limit;
    if (!first || end < *first) first = end;
  }
  return first;
}

/// When its nodes are asked for again.
std::optional<TimePoint> retry_at(const Look& look, const ResizeRequest& request) {
  for (const NodeName& node : request.nodes) {
    const auto retry = look.memory.retries.find(node);
    if (retry != look.memory.retries.end()) return retry->second.next;
  }
  return std::nullopt;
}

void add_reason(Json& json, const ResizeRequest& request) {
  const auto& error = request.error ? request.error : request.last_attempt;
  if (!error) return;
  json["reason"] = error->code;
  json["message"] = error->message;
  if (error->estimated_availability) json["estimate"] = iso(*error->estimated_availability);
}

Json to_json(const Look& look, const Placed<ResizeRequest>& placed) {
  const ResizeRequest& request = *placed;
  const RequestWay way = request_way(request);
  const bool is_dated = request.created != TimePoint{};
  Json json{{"name", request.name.text},
            {"group", placed.group->group.name.text},
            {"nodeset", placed.group->nodeset},
            {"state", request_word(request.state)},
            {"job", request_job(request)},
            {"attempt", way.attempt},
            {"step", way.step},
            // Only this mode has requests.
            {"mode", mode_name(Mode::Queued)},
            {"nodes", fold_hostlist(request.nodes)},
            {"n", request.nodes.size()},
            {"run_seconds", request.run_duration.count()},
            {"created", iso(request.created)}};
  if (request.is_active() && is_dated)
    json["waited_seconds"] = std::max(look.shot.now - request.created, Seconds{0}).count();
  if (const NodesetConfig* set = find_nodeset(look.config, placed.group->nodeset)) {
    json["zones"] = zones_of(*set, way.step, placed.group->group.name.text);
    const auto end = request.is_active() && is_dated ? gives_up(look, *set, request) : std::nullopt;
    if (end) json["gives_up"] = iso(*end);
  }
  if (request.state == RequestState::Failed) {
    if (const auto next = retry_at(look, request)) json["retry_at"] = iso(*next);
  }
  add_reason(json, request);
  return json;
}

bool is_of_interest(const ResizeRequest& request) {
  return request.is_active() || request.state == RequestState::Failed;
}

}  // namespace

CutList requests(const Look& look) {
  std::vector<Placed<ResizeRequest>> all;
  for (const SweptGroup& group : look.shot.groups) {
    for (const ResizeRequest& request : group.requests)
      all.push_back({.item = &request, .group = &group});
  }
  CutList list;
  if (all.size() > kMostRows) {
    // Those that have waited longest, then what has ended last.
    std::stable_sort(all.begin(), all.end(), [](const auto& left, const auto& right) {
      const bool is_left = is_of_interest(*left);
      const bool is_right = is_of_interest(*right);
      if (is_left != is_right) return is_left;
      return is_left ? left->created < right->created : right->created < left->created;
    });
    list.omitted = all.size() - kMostRows;
    all.resize(kMostRows);
  }
  for (const Placed<ResizeRequest>& request : all) list.items.push_back(to_json(look, request));
  return list;
}

}  // namespace flex::status
