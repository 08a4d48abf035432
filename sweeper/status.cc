// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/status.h"

#include "lib/core/duration.h"
#include "lib/core/text.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/lease.h"
#include "sweeper/queue.h"
#include "sweeper/status_parts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <tuple>
#include <unistd.h>

namespace flex {

namespace {

using status::iso;
using status::Json;

constexpr std::size_t kMostActions = 100;
/// Of which so many only tell something to a job or a node: those come by the hundred, and must not
/// push out the few that matter.
constexpr std::size_t kMostNotes = 20;
constexpr std::size_t kMostError = 300;

bool is_note(const PastAction& past) {
  return past.rule == to_string(Rule::JobNote) || past.rule == to_string(Rule::NodeNote);
}

/// What makes two of them the same. Google's words may have a time or a number in them.
auto key_of(const PastAction& past) {
  return std::tie(past.rule, past.what, past.target, past.nodes, past.job, past.why, past.result);
}

void keep(std::deque<PastAction>& actions, PastAction past) {
  const auto same = std::find_if(actions.begin(), actions.end(), [&](const PastAction& known) {
    return key_of(known) == key_of(past);
  });
  if (same != actions.end()) {
    past.first = same->first;
    past.times = same->times + 1;
    actions.erase(same);
  }
  actions.push_back(std::move(past));
  const auto notes = std::count_if(actions.begin(), actions.end(), is_note);
  if (notes > static_cast<std::ptrdiff_t>(kMostNotes))
    actions.erase(std::find_if(actions.begin(), actions.end(), is_note));
  else if (actions.size() > kMostActions)
    actions.pop_front();
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
    Json json{{"time", iso(past.when)},
              {"rule", past.rule},
              {"what", past.what},
              {"target", past.target},
              {"nodes", past.nodes},
              {"job", past.job},
              {"why", past.why},
              {"result", past.result},
              {"times", past.times}};
    if (past.times > 1) json["first"] = iso(past.first);
    if (!past.error.empty()) json["error"] = past.error;
    actions.push_back(std::move(json));
  }
  return actions;
}

Json leaks_json(const Status& status) {
  Json leaks = Json::array();
  for (const Leak& leak : status.leaks)
    leaks.push_back({{"kind", leak.kind},
                     {"target", leak.target},
                     {"since", iso(leak.since)},
                     {"why", leak.why}});
  return leaks;
}

Json round_json(const RoundReport& round) {
  return {{"started", iso(round.started)},
          {"milliseconds", round.took.count()},
          {"complete", round.is_complete},
          {"error", round.error},
          {"calls", round.calls},
          {"done", round.done},
          {"failed", round.failed},
          {"again", round.again},
          {"postponed", round.postponed}};
}

/// Who writes this, and how it goes.
Json head_json(const Status& status, const Config& config, const Snapshot& shot) {
  const auto now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  return {{"version", FLEX_VERSION},
          {"cluster", shot.cluster},
          {"region", config.region},
          {"pid", ::getpid()},
          {"http", status.http},
          {"now", iso(now)},
          {"state", status.state},
          {"why", status.why},
          {"started", iso(status.started)},
          {"interval_seconds", status.interval.count()},
          {"round", status.last_round.number},
          {"last_complete_round", iso(status.last_complete)},
          {"looked", !status.is_blind},
          {"failures_in_a_row", status.failures_in_a_row},
          {"last_round", round_json(status.last_round)}};
}

void add_list(Json& json, const std::string& name, status::CutList list) {
  json[name] = std::move(list.items);
  if (list.omitted > 0) json[name + "_omitted"] = list.omitted;
}

/// Each kind has its own room: however many wait, what runs is told, too.
void add_jobs(Json& json, const status::Look& look) {
  status::CutList waiting = status::waiting_jobs(look);
  status::CutList running = status::running_jobs(look);
  if (waiting.omitted > 0) json["jobs_waiting_omitted"] = waiting.omitted;
  if (running.omitted > 0) json["jobs_running_omitted"] = running.omitted;
  waiting.omitted += running.omitted;
  for (Json& job : running.items) waiting.items.push_back(std::move(job));
  add_list(json, "jobs", std::move(waiting));
}

}  // namespace

std::string status::iso(TimePoint time) {
  return time == TimePoint{} ? std::string{} : format_time(time);
}

void Status::remember(TimePoint when, const Action& action, const Outcome& outcome) {
  keep(actions,
       {.when = when,
        .first = when,
        .rule = std::string(to_string(action.rule)),
        .what = std::string(kind_text(action)),
        .target = target_of(action),
        .nodes = fold_hostlist(nodes_of(action)),
        .job = job_of(action),
        .why = action.why,
        .result = outcome.result,
        .error = shortened(outcome.error, kMostError)});
}

void Status::recall(const Event& event) {
  if (event.rule.empty() || event.program != "flex-sweeper") return;
  Outcome outcome;
  const auto told = [&](const std::string& what) {
    const auto found = event.more.find(what);
    return found == event.more.end() ? std::string{} : found->second;
  };
  // What is asked for is told in flex-resume's words.
  const bool is_refused = event.what == "not_requested";
  const std::string usual = is_refused                        ? "failed"
                            : event.what == "left_to_sweeper" ? "again"
                                                              : "ok";
  outcome.add(told("result").empty() ? usual : told("result"), told("error"));
  keep(actions,
       {.when = event.when,
        .first = event.when,
        .rule = event.rule,
        .what = event.what,
        .target = event.request.empty() ? event.group : event.group + "/" + event.request,
        .nodes = event.nodes,
        .job = event.job,
        .why = event.why,
        .result = outcome.result,
        .error = shortened(outcome.error, kMostError)});
}

std::string to_json_text(const Status& status,
                         const Config& config,
                         const Snapshot& shot,
                         const Memory& memory) {
  const Picture picture{config, shot};
  const status::Look look{.config = config, .shot = shot, .picture = picture, .memory = memory};
  std::size_t entries = 0;
  for (const SweptGroup& group : shot.groups) entries += group.instances.size();
  Json json = head_json(status, config, shot);
  json["groups"] = shot.groups.size();
  json["entries"] = entries;
  json["reservations"] = std::count_if(
      shot.reservations.items.begin(), shot.reservations.items.end(), is_lease_reservation);
  json["active_requests"] = count_active_requests(shot);
  json["nodesets"] = status::nodesets(look, status.is_blind);
  add_list(json, "requests", status::requests(look));
  add_list(json, "vms", status::vms(look));
  add_jobs(json, look);
  json["retries"] = status::retries(look);
  add_list(json, "shut_ways", status::shut_ways(look));
  json["repairs"] = repairs_json(memory);
  json["leaks"] = leaks_json(status);
  json["actions"] = actions_json(status);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flex
