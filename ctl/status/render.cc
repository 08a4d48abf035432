// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/render.h"

#include "ctl/table.h"

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

/// A part of the picture: its lines are cut from the end where there is no room.
struct Part {
  std::string title{};
  std::string what{};  ///< of its lines, for "and 12 more requests"
  std::vector<Row> rows{};
};

std::string plural(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

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
  Part part{.title = "NODESETS", .what = "nodeset", .rows = {}};
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets))
    part.rows.push_back(nodeset_row(*nodeset, view.now));
  return part;
}

/// Which nodes are in which state: what is off is of no interest where it is not asked for.
Part nodes_part(const StatusView& view, const Terminal& terminal) {
  Part part{.title = "NODES", .what = "line", .rows = {}};
  const bool is_one = view.report.nodesets.size() == 1;
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets)) {
    for (const NodesByState& state : by_importance(nodeset->states)) {
      if (state.nodes.empty() || (state.word == "powered_down" && !is_one)) continue;
      constexpr std::size_t kOtherColumns = 40;
      const std::size_t room = std::max(terminal.width, kOtherColumns + kMostList) - kOtherColumns;
      part.rows.push_back({{nodeset->name},
                           {state.word, colour_of_node(state.word)},
                           {fmt::format("{}", state.count)},
                           {fit_nodes(state.nodes, state.count, room)}});
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
  Part part{.title = "REQUESTS", .what = "request", .rows = {}};
  for (const RequestReport* request : sorted) {
    part.rows.push_back({{request->name, Colour::Bold},
                         {request->state, colour_of_request(*request)},
                         {request->job == 0 ? std::string{} : fmt::format("job {}", request->job)},
                         {fmt::format("{}", request->count)},
                         {fit_nodes(request->nodes, request->count, kMostList)},
                         {"since " + time_and_span(request->created, view.now)},
                         {fmt::format("attempt {}", request->attempt)},
                         {outlook(*request, view.now)}});
  }
  return part;
}

/// Jobs that wait and have no request: their turn has not come, or they are asked for otherwise.
Part jobs_part(const StatusView& view) {
  Part part{.title = "WAITING WITHOUT A REQUEST", .what = "job", .rows = {}};
  for (const JobReport& job : view.report.waiting) {
    if (!job.request.empty()) continue;
    part.rows.push_back({{fmt::format("job {}", job.id), Colour::Bold},
                         {job.user},
                         {fmt::format("{}", job.count)},
                         {fit_nodes(job.nodes, job.count, kMostList)},
                         {"since " + time_and_span(job.since, view.now)},
                         {job.note}});
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
  Part part{.title = "VMS", .what = "line", .rows = {}};
  for (const VmReport* vm : sorted) {
    const Seconds left = vm->ends - view.now;
    constexpr Seconds kSoon{1800};
    const bool is_soon = vm->ends != TimePoint{} && left < kSoon;
    part.rows.push_back(
        {{fmt::format("{}", vm->count)},
         {fit_nodes(vm->nodes, vm->count, kMostList)},
         {vm->status, colour_of_vm(vm->status)},
         {vm->zone},
         {vm->ends == TimePoint{} ? std::string("no end known")
                                  : fmt::format("{} left", span_text(left)),
          is_soon ? Colour::Yellow : Colour::Plain},
         {vm->ends == TimePoint{} ? std::string{} : "ends " + clock_text(vm->ends, view.now)},
         {vm->jobs.empty() ? std::string("no job")
                           : fmt::format("job {}", fmt::join(vm->jobs, ", "))}});
  }
  return part;
}

Part actions_part(const StatusView& view) {
  Part part{.title = "LAST ACTIONS", .what = "action", .rows = {}};
  const auto& actions = view.report.actions;
  const std::size_t shown = std::min(actions.size(), kShownActions);
  for (std::size_t i = 0; i < shown; ++i) {
    const ActionReport& action = actions[actions.size() - 1 - i];
    const std::string about = !action.nodes.empty()    ? fit_nodes(action.nodes, 0, kMostList)
                              : !action.target.empty() ? action.target
                              : action.job != 0        ? fmt::format("job {}", action.job)
                                                       : std::string{};
    part.rows.push_back({{clock_text(action.when, view.now)},
                         {action.rule},
                         {action.what},
                         {about},
                         {action.why, Colour::Dim}});
  }
  return part;
}

std::string headline(const StatusView& view) {
  const SweeperReport& report = view.report;
  std::size_t nodes = 0;
  std::size_t vms = 0;
  std::size_t waiting = 0;
  for (const NodesetReport& nodeset : report.nodesets) {
    nodes += nodeset.nodes;
    vms += nodeset.vms;
    waiting += nodeset.jobs_waiting;
  }
  const auto queued = static_cast<std::size_t>(
      std::count_if(report.requests.begin(), report.requests.end(), [](const auto& request) {
        return request.is_waiting();
      }));
  return fmt::format("{} in {}: {} in {}, {}, {}, {} waiting",
                     report.cluster,
                     report.region,
                     plural(nodes, "node"),
                     plural(report.nodesets.size(), "nodeset"),
                     plural(vms, "VM"),
                     plural(queued, "request") + " queued",
                     plural(waiting, "job"));
}

std::string sweeper_line(const StatusView& view) {
  const SweeperReport& report = view.report;
  if (report.state == "live")
    return fmt::format("looked just now, with {} in {:.1f} s",
                       plural(report.calls, "call"),
                       static_cast<double>(report.took.count()) / 1000);
  std::string line = fmt::format("sweeper {}", report.state);
  if (report.state == "passive") line += fmt::format(" ({})", report.why);
  if (report.last_complete != TimePoint{})
    line += fmt::format(", last complete look {} ago", span_text(view.now - report.last_complete));
  return line + fmt::format(", every {}; round {} took {:.1f} s with {}; pid {}",
                            span_text(report.interval),
                            report.round,
                            static_cast<double>(report.took.count()) / 1000,
                            plural(report.calls, "call"),
                            report.pid);
}

void add_part(std::vector<std::string>& lines,
              const Part& part,
              std::size_t shown,
              const Terminal& terminal) {
  lines.emplace_back();
  lines.push_back(terminal.paint(Colour::Bold, part.title));
  const std::size_t hidden = part.rows.size() - shown;
  std::vector<Row> rows = part.rows;
  rows.resize(shown);
  for (Row& row : rows) row.front().text.insert(0, "  ");
  std::ranges::move(format_table(rows, terminal), std::back_inserter(lines));
  if (hidden > 0)
    lines.push_back(terminal.paint(
        Colour::Dim, fmt::format("  and {} more {}{}", hidden, part.what, hidden == 1 ? "" : "s")));
}

}  // namespace

std::vector<std::string> render_status(const StatusView& view, const Terminal& terminal) {
  constexpr std::size_t kMostTrouble = 8;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < std::min(view.trouble.size(), kMostTrouble); ++i)
    lines.push_back(terminal.paint(Colour::Red, cut("!! " + view.trouble[i], terminal.width)));
  if (view.trouble.size() > kMostTrouble)
    lines.push_back(fmt::format("!! and {} more", view.trouble.size() - kMostTrouble));
  lines.push_back(terminal.paint(Colour::Bold, cut(headline(view), terminal.width)));
  lines.push_back(cut(sweeper_line(view), terminal.width));

  std::vector<Part> parts = {nodesets_part(view),
                             requests_part(view),
                             jobs_part(view),
                             vms_part(view),
                             nodes_part(view, terminal),
                             actions_part(view)};
  std::erase_if(parts, [](const Part& part) { return part.rows.empty(); });
  std::vector<std::size_t> wanted;
  wanted.reserve(parts.size());
  for (const Part& part : parts) wanted.push_back(part.rows.size());
  std::vector<std::size_t> shown = wanted;
  if (view.height > 0) {
    // Each part has a blank line, a title and, where it is cut, a last line.
    constexpr std::size_t kAround = 3;
    const std::size_t taken = lines.size() + kAround * parts.size();
    shown = share_lines(wanted, view.height > taken ? view.height - taken : 0);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (shown[i] > 0) add_part(lines, parts[i], shown[i], terminal);
  }
  if (view.height > 0 && lines.size() > view.height) lines.resize(view.height);
  return lines;
}

}  // namespace flex
