// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace flex {

namespace {

/// What a list of nodes may take of a line that says other things, too.
constexpr std::size_t kMostList = 28;
constexpr std::size_t kShownActions = 8;
constexpr std::size_t kEndless = std::numeric_limits<std::size_t>::max();

/// How the lines of a part are laid out.
struct Layout {
  /// The list of nodes is last, and what was last is below; times are spans only.
  bool is_narrow = false;
  std::size_t list = kMostList;  ///< columns that a list of nodes may take
};

std::vector<Row> rows_of(const Part& part) {
  std::vector<Row> rows;
  rows.reserve(part.entries.size());
  for (const Entry& entry : part.entries) {
    rows.push_back(entry.row);
    rows.back().front().text.insert(0, kIndent);
  }
  return rows;
}

/// Cuts the lists of nodes that are the last cells so that the lines fit.
void fit_lists(Part& part, std::size_t width) {
  constexpr std::size_t kLeast = 12;
  std::vector<Row> rows = rows_of(part);
  for (Row& row : rows) row.back().text = "x";
  const std::size_t others = table_width(rows) - 1;
  const std::size_t room = std::max(width, others + kLeast) - others;
  for (Entry& entry : part.entries) {
    std::string& list = entry.row.back().text;
    if (entry.nodes > 0) list = fit_nodes(list, entry.nodes, room);
  }
}

/// The part as it is on a wide terminal if it fits, else as on a narrow one.
template <class Make>
Part fitting(const StatusView& view, const Terminal& terminal, const Make& make) {
  const bool is_whole = view.height == 0;
  Part wide = make(Layout{.is_narrow = false, .list = is_whole ? kEndless : kMostList});
  if (table_width(rows_of(wide)) <= terminal.width) return wide;
  Part narrow = make(Layout{.is_narrow = true, .list = kEndless});
  if (!is_whole) fit_lists(narrow, terminal.width);
  return narrow;
}

/// "18:35:00 (2 h 13 min)"; the span before `now` or after it.
std::string time_and_span(TimePoint time, TimePoint now) {
  if (time == TimePoint{}) return {};
  const Seconds span = time > now ? time - now : now - time;
  return fmt::format("{} ({})", clock_text(time, now), span_text(span));
}

/// "12 more VMs are not listed"; empty if there are none.
std::string unlisted_text(const SweeperReport& report, std::size_t omitted, std::string_view one) {
  if (omitted == 0) return {};
  return fmt::format("{} more {}{}{} not listed",
                     omitted,
                     one,
                     omitted == 1 ? "" : "s",
                     report.is_part ? " of all nodesets are"
                     : omitted == 1 ? " is"
                                    : " are");
}

/// The states of a node in the order in which one looks for them.
std::size_t rank_of(std::string_view word) {
  static constexpr std::array<std::string_view, 11> kOrder = {"unknown",
                                                              "unusable",
                                                              "down",
                                                              "drained",
                                                              "draining",
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
  if (word == "down" || word == "unknown" || word == "unusable") return Colour::Red;
  if (word == "waiting" || word == "booting" || word.starts_with("drain")) return Colour::Yellow;
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
  if (!nodeset.stopped.empty()) return {"stopped: " + nodeset.stopped, Colour::Red};
  if (!nodeset.paused.empty()) return {nodeset.paused, Colour::Yellow};
  return {states_text(nodeset)};
}

Entry nodeset_entry(const NodesetReport& nodeset, TimePoint now, const Layout& layout) {
  std::string nodes = plural(nodeset.nodes, "node");
  if (nodeset.static_nodes > 0) nodes += fmt::format(", {} static", nodeset.static_nodes);
  std::string jobs;
  if (nodeset.jobs_waiting + nodeset.jobs_running > 0)
    jobs = fmt::format("{} waiting, {} running", nodeset.jobs_waiting, nodeset.jobs_running);
  std::string ends;
  if (nodeset.next_end != TimePoint{})
    ends = layout.is_narrow ? "first ends in " + span_text(nodeset.next_end - now)
                            : "first ends " + time_and_span(nodeset.next_end, now);
  Entry entry{.row = {{nodeset.name, Colour::Bold},
                      {std::move(nodes)},
                      {plural(nodeset.vms, "VM")},
                      {std::move(jobs), nodeset.jobs_waiting > 0 ? Colour::Yellow : Colour::Plain},
                      {std::move(ends)}}};
  if (layout.is_narrow)
    entry.below = state_of_nodeset(nodeset);
  else
    entry.row.push_back(state_of_nodeset(nodeset));
  return entry;
}

/// Stopped ones first, then those where somebody waits, then as in the file.
std::vector<const NodesetReport*> by_importance(const std::vector<NodesetReport>& nodesets) {
  std::vector<const NodesetReport*> sorted;
  sorted.reserve(nodesets.size());
  for (const NodesetReport& nodeset : nodesets) sorted.push_back(&nodeset);
  const auto rank = [](const NodesetReport& nodeset) {
    if (!nodeset.stopped.empty()) return 0;
    if (!nodeset.paused.empty()) return 1;
    if (nodeset.jobs_waiting > 0) return 2;
    return nodeset.vms > 0 ? 3 : 4;
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* left, const auto* right) {
    return rank(*left) < rank(*right);
  });
  return sorted;
}

Part nodesets_part(const StatusView& view, const Layout& layout) {
  Part part{.title = "NODESETS"};
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets))
    part.entries.push_back(nodeset_entry(*nodeset, view.now, layout));
  return part;
}

/// Which nodes are in which state: what is off is of no interest where it is not asked for.
Part nodes_part(const StatusView& view) {
  Part part{.title = "NODES"};
  const bool is_one = view.report.nodesets.size() == 1;
  for (const NodesetReport* nodeset : by_importance(view.report.nodesets)) {
    for (const NodesByState& state : by_importance(nodeset->states)) {
      if (state.nodes.empty() || (state.word == "powered_down" && !is_one)) continue;
      part.entries.push_back({.row = {{nodeset->name},
                                      {state.word, colour_of_node(state.word)},
                                      {fmt::format("{}", state.count)},
                                      {state.nodes}},
                              .below = {},
                              .nodes = state.count});
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
std::string outlook(const RequestReport& request, TimePoint now, const Layout& layout) {
  std::vector<std::string> words;
  if (request.estimate != TimePoint{} && request.is_waiting())
    words.push_back("Google estimates " + clock_text(request.estimate, now));
  if (!request.reason.empty()) words.push_back(request.reason);
  if (layout.is_narrow && request.attempt > 1)
    words.push_back(fmt::format("attempt {}", request.attempt));
  if (request.gives_up != TimePoint{})
    words.push_back("gives up at " + clock_text(request.gives_up, now));
  if (request.retry_at != TimePoint{})
    words.push_back("next try at " + clock_text(request.retry_at, now));
  if (!request.message.empty()) words.push_back(request.message);
  return fmt::format("{}", fmt::join(words, "; "));
}

/// Names that more than one request has, each in a group of its own.
std::set<std::string> shared_names(const std::vector<RequestReport>& requests) {
  std::set<std::string> seen;
  std::set<std::string> shared;
  for (const RequestReport& request : requests) {
    if (!seen.insert(request.name).second) shared.insert(request.name);
  }
  return shared;
}

Entry request_entry(const RequestReport& request,
                    bool is_shared,
                    TimePoint now,
                    const Layout& layout) {
  Entry entry{.row = {{request.name, Colour::Bold},
                      {request.state, colour_of_request(request)},
                      {request.job == 0 ? std::string{} : fmt::format("job {}", request.job)},
                      {fmt::format("{}", request.count)}}};
  const Cell nodes{fit_nodes(request.nodes, request.count, layout.list)};
  Cell said{outlook(request, now, layout)};
  if (is_shared)
    said.text = fmt::format("in {}{}{}", request.group, said.text.empty() ? "" : "; ", said.text);
  if (layout.is_narrow) {
    const Cell waits{request.created == TimePoint{} ? "" : span_text(now - request.created)};
    entry.row.insert(entry.row.end(), {waits, nodes});
    entry.below = std::move(said);
    entry.nodes = request.count;
  } else {
    const Cell since{"since " + time_and_span(request.created, now)};
    const Cell attempt{fmt::format("attempt {}", request.attempt)};
    entry.row.insert(entry.row.end(), {nodes, since, attempt, said});
  }
  return entry;
}

Part requests_part(const StatusView& view, const Layout& layout) {
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
  Part part{.title = "REQUESTS",
            .unlisted = unlisted_text(view.report, view.report.requests_omitted, "request")};
  const std::set<std::string> shared = shared_names(view.report.requests);
  for (const RequestReport* request : sorted)
    part.entries.push_back(
        request_entry(*request, shared.contains(request->name), view.now, layout));
  return part;
}

/// What it waits for, and what it was told.
std::string job_text(const JobReport& job, TimePoint now) {
  std::string text;
  if (job.phase == "retry") text = "asked for again at " + clock_text(job.retry_at, now);
  if (job.phase == "turn") text = "its turn has not come";
  if (job.phase == "creating") text = "Google makes its VMs";
  if (job.phase == "booting") text = "its VMs boot";
  return text.empty() || job.note.empty() ? text + job.note : text + "; " + job.note;
}

/// Jobs that wait and have no request: their turn has not come, or they are asked for otherwise.
Part jobs_part(const StatusView& view, const Layout& layout) {
  Part part{.title = "WAITING WITHOUT A REQUEST",
            .unlisted = unlisted_text(view.report, view.report.waiting_omitted, "job")};
  for (const JobReport& job : view.report.waiting) {
    if (!job.request.empty()) continue;
    Entry entry{.row = {{fmt::format("job {}", job.id), Colour::Bold},
                        {job.user},
                        {fmt::format("{}", job.count)}}};
    const Cell nodes{fit_nodes(job.nodes, job.count, layout.list)};
    if (layout.is_narrow) {
      const Cell waits{job.since == TimePoint{} ? "" : span_text(view.now - job.since)};
      entry.row.insert(entry.row.end(), {waits, nodes});
      entry.below = {job_text(job, view.now)};
      entry.nodes = job.count;
    } else {
      const Cell since{"since " + time_and_span(job.since, view.now)};
      entry.row.insert(entry.row.end(), {nodes, since, {job_text(job, view.now)}});
    }
    part.entries.push_back(std::move(entry));
  }
  return part;
}

/// What is asked for again, and when.
Part retries_part(const StatusView& view, const Layout& layout) {
  Part part{.title = "RETRIES"};
  for (const RetryReport& retry : view.report.retries) {
    const Cell count{fmt::format("{}", retry.count)};
    const Cell nodes{fit_nodes(retry.nodes, retry.count, layout.list)};
    const bool is_due = retry.next <= view.now;
    const Cell next{is_due             ? std::string("next try is due")
                    : layout.is_narrow ? "next try in " + span_text(retry.next - view.now)
                                       : "next try " + time_and_span(retry.next, view.now),
                    Colour::Yellow};
    const Cell failures{fmt::format("{} failed", retry.failures)};
    if (layout.is_narrow)
      part.entries.push_back(
          {.row = {count, next, failures, nodes}, .below = {retry.why}, .nodes = retry.count});
    else
      part.entries.push_back({.row = {count, nodes, next, failures, {retry.why}}});
  }
  return part;
}

/// Where nothing is asked for now, for whom, until when and why.
Part shut_part(const StatusView& view, const Layout& layout) {
  Part part{.title = "SHUT WAYS",
            .unlisted = unlisted_text(view.report, view.report.shut_ways_omitted, "way")};
  for (const ShutWayReport& way : view.report.shut_ways) {
    const bool is_whole = way.until == TimePoint{};
    const Cell group{way.group, Colour::Bold};
    const Cell job{way.job == 0 ? std::string{} : fmt::format("job {}", way.job)};
    const Cell count{fmt::format("{}", way.count)};
    const Cell nodes{fit_nodes(way.nodes, way.count, layout.list)};
    const Cell until{is_whole           ? std::string("as long as it waits")
                     : layout.is_narrow ? "for " + span_text(way.until - view.now)
                                        : "until " + time_and_span(way.until, view.now),
                     Colour::Yellow};
    if (layout.is_narrow)
      part.entries.push_back(
          {.row = {group, job, count, until, nodes}, .below = {way.why}, .nodes = way.count});
    else
      part.entries.push_back({.row = {group, job, count, nodes, until, {way.why}}});
  }
  return part;
}

Colour colour_of_vm(std::string_view status) {
  if (status == "dead") return Colour::Red;
  if (status == "up") return Colour::Green;
  return status == "booting" ? Colour::Yellow : Colour::Dim;
}

/// The first so many of the jobs on it, and how many more there are.
std::string jobs_text(const VmReport& vm, std::size_t most) {
  if (vm.jobs_count == 0) return "no job";
  const std::size_t shown = std::min(vm.jobs.size(), most);
  const auto end = vm.jobs.begin() + static_cast<std::ptrdiff_t>(shown);
  std::string text = fmt::format("job {}", fmt::join(vm.jobs.begin(), end, ", "));
  if (shown < vm.jobs_count) text += fmt::format(" and {} more", vm.jobs_count - shown);
  return text;
}

Entry vm_entry(const VmReport& vm, TimePoint now, const Layout& layout) {
  constexpr Seconds kSoon{1800};
  const bool has_end = vm.ends != TimePoint{};
  const Seconds left = vm.ends - now;
  const Cell nodes{fit_nodes(vm.nodes, vm.count, layout.list)};
  const Cell status{vm.status, colour_of_vm(vm.status)};
  const Cell zone{vm.zone};
  const Cell lives{has_end ? fmt::format("{} left", span_text(left)) : "no end known",
                   has_end && left < kSoon ? Colour::Yellow : Colour::Plain};
  const Cell jobs{jobs_text(vm, layout.is_narrow ? 2 : kEndless)};
  const Cell count{fmt::format("{}", vm.count)};
  if (layout.is_narrow)
    return {.row = {count, status, zone, lives, jobs, nodes}, .below = {}, .nodes = vm.count};
  const Cell end{has_end ? "ends " + clock_text(vm.ends, now) : std::string{}};
  return {.row = {count, nodes, status, zone, lives, end, jobs}};
}

/// Those that end first come first, those without an end last.
Part vms_part(const StatusView& view, const Layout& layout) {
  std::vector<const VmReport*> sorted;
  sorted.reserve(view.report.vms.size());
  for (const VmReport& vm : view.report.vms) sorted.push_back(&vm);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* left, const auto* right) {
    const auto key = [](const VmReport& vm) {
      return std::pair(vm.status != "dead", vm.ends == TimePoint{} ? TimePoint::max() : vm.ends);
    };
    return key(*left) < key(*right);
  });
  Part part{.title = "VMS", .unlisted = unlisted_text(view.report, view.report.vms_omitted, "VM")};
  for (const VmReport* vm : sorted) part.entries.push_back(vm_entry(*vm, view.now, layout));
  return part;
}

/// What became of it, where that is not what was meant, and why it was to be done.
Cell why_cell(const ActionReport& action) {
  std::string text;
  if (action.times > 1) text = fmt::format("{} times; ", action.times);
  if (action.result == "failed") text += fmt::format("failed: {}; ", action.error);
  if (action.result == "again") text += "moment missed; ";
  if (action.result == "skipped") text += "not begun; ";
  return {text + action.why, action.result == "failed" ? Colour::Red : Colour::Dim};
}

Part actions_part(const StatusView& view, const Layout& layout) {
  Part part{.title = "LAST ACTIONS", .most = kShownActions};
  const auto& actions = view.report.actions;
  for (auto it = actions.rbegin(); it != actions.rend(); ++it) {
    const ActionReport& action = *it;
    const std::string about = !action.nodes.empty()    ? fit_nodes(action.nodes, 0, layout.list)
                              : !action.target.empty() ? action.target
                              : action.job != 0        ? fmt::format("job {}", action.job)
                                                       : std::string{};
    Entry entry{
        .row = {{clock_text(action.when, view.now)}, {action.rule}, {action.what}, {about}}};
    Cell why = why_cell(action);
    if (layout.is_narrow) {
      entry.below = std::move(why);
      entry.nodes = action.nodes.empty() ? 0 : 1;
    } else {
      entry.row.push_back(std::move(why));
    }
    part.entries.push_back(std::move(entry));
  }
  return part;
}

}  // namespace

std::string plural(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::vector<Part> parts_of(const StatusView& view, const Terminal& terminal) {
  const auto fit = [&](auto make) {
    return fitting(view, terminal, [&](const Layout& layout) { return make(view, layout); });
  };
  std::vector<Part> parts = {fit(nodesets_part),
                             fit(requests_part),
                             fit(jobs_part),
                             fit(retries_part),
                             fit(shut_part),
                             fit(vms_part),
                             nodes_part(view)};
  if (view.height > 0) fit_lists(parts.back(), terminal.width);
  parts.push_back(fit(actions_part));
  std::erase_if(parts,
                [](const Part& part) { return part.entries.empty() && part.unlisted.empty(); });
  return parts;
}

}  // namespace flex
