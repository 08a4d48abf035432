// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

namespace flex {

namespace {

/// What a list of nodes may take of a line that says other things, too.
constexpr std::size_t kMostList = 28;
constexpr std::size_t kShownActions = 8;

/// "18:35:00 (2 h 13 min)"; the span before `now` or after it.
std::string time_and_span(TimePoint time, TimePoint now) {
  if (time == TimePoint{}) return {};
  const Seconds span = time > now ? time - now : now - time;
  return fmt::format("{} ({})", clock_text(time, now), span_text(span));
}

/// The states of a node in the order in which one looks for them.
std::size_t rank_of(std::string_view word) {
  static constexpr std::array<std::string_view, 9> kOrder = {"unknown",
                                                             "down",
                                                             "drained",
                                                             "waiting",
                                                             "booting",
                                                             "allocated",
                                                             "idle",
                                                             "powering_down",
                                                             "powered_down"};
  return static_cast<std::size_t>(
      std::distance(kOrder.begin(), std::find(kOrder.begin(), kOrder.end(), word)));
}

Colour colour_of_node(std::string_view word) {
  if (word == "down" || word == "unknown") return Colour::Red;
  if (word == "waiting" || word == "booting" || word == "drained") return Colour::Yellow;
  if (word == "allocated" || word == "idle") return Colour::Green;
  return Colour::Dim;
}

std::vector<NodesByState> by_importance(std::vector<NodesByState> states) {
  std::stable_sort(states.begin(), states.end(), [](const auto& left, const auto& right) {
    return rank_of(left.word) < rank_of(right.word);
  });
  return states;
}

std::string states_text(const NodesetReport& nodeset) {
  std::vector<std::string> words;
  words.reserve(nodeset.states.size());
  for (const NodesByState& state : by_importance(nodeset.states))
    words.push_back(fmt::format("{} {}", state.count, state.word));
  return fmt::format("{}", fmt::join(words, ", "));
}

Cell state_of_nodeset(const NodesetReport& nodeset) {
  if (nodeset.stopped.empty()) return {states_text(nodeset)};
  if (nodeset.is_paused()) return {nodeset.stopped, Colour::Yellow};
  return {"stopped: " + nodeset.stopped, Colour::Red};
}

Row nodeset_row(const NodesetReport& nodeset, TimePoint now) {
  std::string nodes = plural(nodeset.nodes, "node");
  if (nodeset.static_nodes > 0) nodes += fmt::format(", {} static", nodeset.static_nodes);
  std::string jobs;
  if (nodeset.jobs_waiting + nodeset.jobs_running > 0)
    jobs = fmt::format("{} waiting, {} running", nodeset.jobs_waiting, nodeset.jobs_running);
  const std::string ends = nodeset.next_end == TimePoint{}
                               ? std::string{}
                               : "first ends " + time_and_span(nodeset.next_end, now);
  return {{nodeset.name, Colour::Bold},
          {std::move(nodes)},
          {plural(nodeset.vms, "VM")},
          {std::move(jobs), nodeset.jobs_waiting > 0 ? Colour::Yellow : Colour::Plain},
          {ends},
          state_of_nodeset(nodeset)};
}

/// Stopped ones first, then those where somebody waits, then as in the file.
std::vector<const NodesetReport*> by_importance(const std::vector<NodesetReport>& nodesets) {
  std::vector<const NodesetReport*> sorted;
  sorted.reserve(nodesets.size());
  for (const NodesetReport& nodeset : nodesets) sorted.push_back(&nodeset);
  const auto rank = [](const NodesetReport& nodeset) {
    if (!nodeset.stopped.empty()) return nodeset.is_paused() ? 1 : 0;
    if (nodeset.jobs_waiting > 0) return 2;
    return nodeset.vms > 0 ? 3 : 4;
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* left, const auto* right) {
    return rank(*left) < rank(*right);
  });
  return sorted;
}

Part nodesets_part(const StatusView& view) {
  Part part{.title = "NODESETS"};
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets))
    part.entries.push_back({.row = nodeset_row(*nodeset, view.now)});
  return part;
}

/// Which nodes are in which state: what is off is of no interest where it is not asked for.
Part nodes_part(const StatusView& view, const Terminal& terminal) {
  Part part{.title = "NODES"};
  const bool is_one = view.report.nodesets.size() == 1;
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets)) {
    for (const NodesByState& state : by_importance(nodeset->states)) {
      if (state.nodes.empty() || (state.word == "powered_down" && !is_one)) continue;
      constexpr std::size_t kOtherColumns = 40;
      const std::size_t room = std::max(terminal.width, kOtherColumns + kMostList) - kOtherColumns;
      part.entries.push_back({.row = {{nodeset->name},
                                      {state.word, colour_of_node(state.word)},
                                      {fmt::format("{}", state.count)},
                                      {fit_nodes(state.nodes, state.count, room)}}});
    }
  }
  return part;
}

Colour colour_of_request(const RequestReport& request) {
  if (request.state == "FAILED") return Colour::Red;
  if (request.state == "ACCEPTED" || request.state == "CREATING") return Colour::Yellow;
  return request.state == "PROVISIONING" ? Colour::Green : Colour::Dim;
}

/// What Google says about it, and what will happen to it.
std::string outlook(const RequestReport& request, TimePoint now) {
  std::vector<std::string> words;
  if (!request.reason.empty()) words.push_back(request.reason);
  if (request.estimate != TimePoint{} && request.is_waiting())
    words.push_back("Google estimates " + clock_text(request.estimate, now));
  if (request.gives_up != TimePoint{})
    words.push_back("gives up at " + clock_text(request.gives_up, now));
  if (request.retry_at != TimePoint{})
    words.push_back("next try at " + clock_text(request.retry_at, now));
  if (!request.message.empty()) words.push_back(request.message);
  return fmt::format("{}", fmt::join(words, "; "));
}

Part requests_part(const StatusView& view) {
  std::vector<const RequestReport*> sorted;
  sorted.reserve(view.report.requests.size());
  for (const RequestReport& request : view.report.requests) sorted.push_back(&request);
  const auto rank = [](const RequestReport& request) {
    if (request.state == "FAILED") return 0;
    return request.is_waiting() ? 1 : 2;
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* left, const auto* right) {
    return std::pair(rank(*left), left->created) < std::pair(rank(*right), right->created);
  });
  Part part{.title = "REQUESTS"};
  for (const RequestReport* request : sorted) {
    part.entries.push_back(
        {.row = {{request->name, Colour::Bold},
                 {request->state, colour_of_request(*request)},
                 {request->job == 0 ? std::string{} : fmt::format("job {}", request->job)},
                 {fmt::format("{}", request->count)},
                 {fit_nodes(request->nodes, request->count, kMostList)},
                 {"since " + time_and_span(request->created, view.now)},
                 {fmt::format("attempt {}", request->attempt)},
                 {outlook(*request, view.now)}}});
  }
  return part;
}

/// Jobs that wait and have no request: their turn has not come, or they are asked for otherwise.
Part jobs_part(const StatusView& view) {
  Part part{.title = "WAITING WITHOUT A REQUEST"};
  for (const JobReport& job : view.report.waiting) {
    if (!job.request.empty()) continue;
    part.entries.push_back({.row = {{fmt::format("job {}", job.id), Colour::Bold},
                                    {job.user},
                                    {fmt::format("{}", job.count)},
                                    {fit_nodes(job.nodes, job.count, kMostList)},
                                    {"since " + time_and_span(job.since, view.now)},
                                    {job.note}}});
  }
  return part;
}

Colour colour_of_vm(std::string_view status) {
  if (status == "dead") return Colour::Red;
  if (status == "up") return Colour::Green;
  return status == "booting" ? Colour::Yellow : Colour::Dim;
}

/// Those that end first come first, those without an end last.
Part vms_part(const StatusView& view) {
  std::vector<const VmReport*> sorted;
  sorted.reserve(view.report.vms.size());
  for (const VmReport& vm : view.report.vms) sorted.push_back(&vm);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* left, const auto* right) {
    const auto key = [](const VmReport& vm) {
      return std::pair(vm.status != "dead", vm.ends == TimePoint{} ? TimePoint::max() : vm.ends);
    };
    return key(*left) < key(*right);
  });
  Part part{.title = "VMS"};
  for (const VmReport* vm : sorted) {
    const Seconds left = vm->ends - view.now;
    constexpr Seconds kSoon{1800};
    const bool is_soon = vm->ends != TimePoint{} && left < kSoon;
    part.entries.push_back(
        {.row = {
             {fmt::format("{}", vm->count)},
             {fit_nodes(vm->nodes, vm->count, kMostList)},
             {vm->status, colour_of_vm(vm->status)},
             {vm->zone},
             {vm->ends == TimePoint{} ? std::string("no end known")
                                      : fmt::format("{} left", span_text(left)),
              is_soon ? Colour::Yellow : Colour::Plain},
             {vm->ends == TimePoint{} ? std::string{} : "ends " + clock_text(vm->ends, view.now)},
             {vm->jobs.empty() ? std::string("no job")
                               : fmt::format("job {}", fmt::join(vm->jobs, ", "))}}});
  }
  return part;
}

Part actions_part(const StatusView& view) {
  Part part{.title = "LAST ACTIONS", .entries = {}, .most = kShownActions};
  const auto& actions = view.report.actions;
  for (auto it = actions.rbegin(); it != actions.rend(); ++it) {
    const ActionReport& action = *it;
    const std::string about = !action.nodes.empty()    ? fit_nodes(action.nodes, 0, kMostList)
                              : !action.target.empty() ? action.target
                              : action.job != 0        ? fmt::format("job {}", action.job)
                                                       : std::string{};
    part.entries.push_back({.row = {{clock_text(action.when, view.now)},
                                    {action.rule},
                                    {action.what},
                                    {about},
                                    {action.why, Colour::Dim}}});
  }
  return part;
}

}  // namespace

std::string plural(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::vector<Part> parts_of(const StatusView& view, const Terminal& terminal) {
  std::vector<Part> parts = {nodesets_part(view),
                             requests_part(view),
                             jobs_part(view),
                             vms_part(view),
                             nodes_part(view, terminal),
                             actions_part(view)};
  std::erase_if(parts, [](const Part& part) { return part.entries.empty(); });
  return parts;
}

}  // namespace flex
