// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/act.h"

#include "lib/slurm/hostlist.h"

#include <algorithm>
#include <array>
#include <utility>

namespace flex {

namespace {

std::string number_or_nothing(std::size_t number) {
  return number == 0 ? std::string{} : std::to_string(number);
}

/// What a job is told.
std::string text_of(const Action& action) {
  if (const auto* tell = std::get_if<TellJob>(&action.what)) return tell->comment;
  if (const auto* warn = std::get_if<WarnJob>(&action.what)) return warn->comment;
  return {};
}

/// A job whose VM is gone, or is about to go, does not wait until Google has answered all requests.
bool is_urgent(const Action& action) {
  return action.rule == Rule::UnbackedNode || action.rule == Rule::LeaseEnd;
}

}  // namespace

void log_action(const Log& log, const Action& action) {
  const std::vector<NodeName> nodes = nodes_of(action);
  log.info("action",
           {{"rule", to_string(action.rule)},
            {"what", kind_text(action)},
            {"target", target_of(action)},
            {"job", number_or_nothing(job_of(action))},
            {"nodes", fold_hostlist(nodes)},
            {"n", number_or_nothing(nodes.size())},
            {"text", text_of(action)},
            {"why", action.why}});
}

Event event_like(const Action& action) {
  Event event;
  event.rule = to_string(action.rule);
  event.why = action.why;
  return event;
}

void Outcome::add(std::string_view part, const std::string& why) {
  constexpr std::array<std::string_view, 4> kWorse{"skipped", "done", "again", "failed"};
  const auto rank = [&](std::string_view word) {
    return std::find(kWorse.begin(), kWorse.end(), word) - kWorse.begin();
  };
  // The history says "ok".
  const std::string_view word = part == "ok" ? "done" : part;
  if (rank(word) <= rank(result)) return;
  result = word;
  error = why;
}

void ActReport::note(const Action& action,
                     const std::vector<NodeName>& nodes,
                     std::string_view result,
                     const Error& error) {
  known[&action].add(result, error.what);
  // What only repeats, for people, what is there: a busy cluster has thousands a minute.
  if (action.rule == Rule::JobNote || action.rule == Rule::NodeNote) return;
  Event event = event_like(action);
  event.what = kind_text(action);
  event.job = job_of(action);
  set_nodes(event, nodes);
  const std::string target = target_of(action);
  const std::size_t slash = target.find('/');
  event.group = target.substr(0, slash);
  if (slash != std::string::npos) event.request = target.substr(slash + 1);
  event.more["result"] = result;
  event.more["error"] = error.what;
  event.more["text"] = text_of(action);
  events.push_back(std::move(event));
}

void ActReport::note(const Action& action, std::string_view result, const Error& error) {
  note(action, nodes_of(action), result, error);
}

ActReport act(Actor& actor, const std::vector<Action>& actions) {
  ActReport report;
  if (actions.empty() || actor.should_stop()) return report;
  std::vector<Action> urgent;
  std::vector<Action> rest;
  for (const Action& action : actions) {
    log_action(actor.log, action);
    (is_urgent(action) ? urgent : rest).push_back(action);
  }
  const auto tell = [&] {
    if (actor.tell && !report.events.empty()) actor.tell(std::exchange(report.events, {}));
  };
  act_on_slurm(actor, urgent, report);
  tell();
  act_on_cloud(actor, rest, report);
  tell();
  if (!actor.should_stop()) act_on_slurm(actor, rest, report);
  tell();
  auto next_urgent = urgent.begin();
  auto next = rest.begin();
  for (const Action& action : actions) {
    const Action& copy = is_urgent(action) ? *next_urgent++ : *next++;
    report.outcomes.push_back(std::move(report.known[&copy]));
  }
  report.known.clear();
  return report;
}

}  // namespace flex
