// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/status.h"

#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

namespace flex {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostActions = 100;

std::string iso(TimePoint time) {
  if (time == TimePoint{}) return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time.time_since_epoch().count()));
}

std::string_view state_word(RequestState state) {
  switch (state) {
    case RequestState::Creating:
      return "CREATING";
    case RequestState::Accepted:
      return "ACCEPTED";
    case RequestState::Provisioning:
      return "PROVISIONING";
    case RequestState::Succeeded:
      return "SUCCEEDED";
    case RequestState::Failed:
      return "FAILED";
    case RequestState::Cancelled:
      return "CANCELLED";
    case RequestState::Deleting:
      return "DELETING";
    case RequestState::Unknown:
      break;
  }
  return "UNKNOWN";
}

/// What a node is doing, in one word.
std::string_view node_word(const NodePicture& node) {
  if (node.node == nullptr) return "unknown";
  if (is_powering_down(*node.node)) return "powering_down";
  if (node.is_coming_up()) return node.has_vm() ? "booting" : "waiting";
  if (is_powered_down(*node.node)) return "powered_down";
  if (is_down(*node.node)) return "down";
  return is_allocated(*node.node) ? "allocated" : "idle";
}

Json nodesets_json(const Config& config, const Picture& picture, const Memory& memory) {
  std::vector<std::map<std::string_view, std::size_t>> counts(config.nodesets.size());
  std::vector<std::size_t> vms(config.nodesets.size());
  for (const NodePicture& node : picture.nodes()) {
    ++counts[node.nodeset][node_word(node)];
    if (node.has_vm()) ++vms[node.nodeset];
  }
  Json sets = Json::array();
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    const NodesetConfig& set = config.nodesets[i];
    Json states = Json::object();
    for (const auto& [word, count] : counts[i]) states[std::string(word)] = count;
    Json json{{"name", set.name},
              {"nodes", set.nodes.size()},
              {"static_nodes", set.static_nodes.size()},
              {"vms", vms[i]},
              {"states", std::move(states)}};
    const auto stopped = memory.stopped.find(set.name);
    if (stopped != memory.stopped.end()) json["stopped"] = stopped->second.why;
    sets.push_back(std::move(json));
  }
  return sets;
}

Json requests_json(const Snapshot& shot) {
  Json requests = Json::array();
  for (const SweptGroup& group : shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      Json json{{"name", request.name.text},
                {"group", group.group.name.text},
                {"nodeset", group.nodeset},
                {"state", state_word(request.state)},
                {"job", request_job(request)},
                {"attempt", request_attempt(request)},
                {"nodes", fold_hostlist(request.nodes)},
                {"n", request.nodes.size()},
                {"run_seconds", request.run_duration.count()},
                {"created", iso(request.created)}};
      const auto& error = request.error ? request.error : request.last_attempt;
      if (error) {
        json["reason"] = error->code;
        json["message"] = error->message;
        if (error->estimated_availability) json["estimate"] = iso(*error->estimated_availability);
      }
      requests.push_back(std::move(json));
    }
  }
  return requests;
}

/// Nodes that got new VMs because they were drained, in the last day.
Json repairs_json(const Memory& memory) {
  Json repairs = Json::array();
  for (const auto& [node, history] : memory.repairs) {
    Json json{{"node", node.text},
              {"count", history.times.size()},
              {"reason", history.reason},
              {"given_up", history.has_given_up}};
    if (!history.times.empty()) json["last"] = iso(history.times.back());
    repairs.push_back(std::move(json));
  }
  return repairs;
}

Json actions_json(const Status& status) {
  Json actions = Json::array();
  for (const PastAction& past : status.actions) {
    actions.push_back({{"time", iso(past.when)},
                       {"rule", past.rule},
                       {"what", past.what},
                       {"target", past.target},
                       {"nodes", past.nodes},
                       {"job", past.job},
                       {"why", past.why}});
  }
  return actions;
}

}  // namespace

void Status::remember(TimePoint when, const Action& action) {
  actions.push_back({.when = when,
                     .rule = std::string(to_string(action.rule)),
                     .what = std::string(kind_text(action)),
                     .target = target_of(action),
                     .nodes = fold_hostlist(nodes_of(action)),
                     .job = job_of(action),
                     .why = action.why});
  if (actions.size() > kMostActions) actions.pop_front();
}

std::string to_json_text(const Status& status,
                         const Config& config,
                         const Snapshot& shot,
                         const Memory& memory) {
  const Picture picture{config, shot};
  const RoundReport& round = status.last_round;
  std::size_t vms = 0;
  for (const SweptGroup& group : shot.groups) vms += group.instances.size();
  const Json json{{"version", FLEX_VERSION},
                  {"cluster", shot.cluster},
                  {"region", config.region},
                  {"pid", ::getpid()},
                  {"state", status.state},
                  {"why", status.why},
                  {"http", status.http},
                  {"started", iso(status.started)},
                  {"interval_seconds", config.sweeper.interval.count()},
                  {"round", round.number},
                  {"last_complete_round", iso(status.last_complete)},
                  {"failures_in_a_row", status.failures_in_a_row},
                  {"last_round",
                   {{"started", iso(round.started)},
                    {"milliseconds", round.took.count()},
                    {"complete", round.is_complete},
                    {"error", round.error},
                    {"calls", round.calls},
                    {"done", round.done},
                    {"failed", round.failed},
                    {"again", round.again},
                    {"postponed", round.postponed}}},
                  {"groups", shot.groups.size()},
                  {"entries", vms},
                  {"nodesets", nodesets_json(config, picture, memory)},
                  {"requests", requests_json(shot)},
                  {"repairs", repairs_json(memory)},
                  {"actions", actions_json(status)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flex
