// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/status/render.h"

#include "ctl/status/parts.h"
#include "ctl/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace flex {

namespace {

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
  if (report.is_blind)
    return fmt::format("{} in {}: {}, not looked at yet",
                       report.cluster,
                       report.region,
                       plural(report.nodesets.size(), "nodeset"));
  const bool is_counted = !report.is_part && report.active_requests > 0;
  const auto listed = static_cast<std::size_t>(
      std::count_if(report.requests.begin(), report.requests.end(), [](const auto& request) {
        return request.is_waiting();
      }));
  return fmt::format("{} in {}: {} in {}, {}, {}, {}, {} waiting",
                     report.cluster,
                     report.region,
                     plural(nodes, "node"),
                     plural(report.nodesets.size(), "nodeset"),
                     plural(vms, "VM"),
                     plural(report.groups, "group"),
                     (report.requests_omitted > 0 && !is_counted ? "at least " : "") +
                         plural(is_counted ? report.active_requests : listed, "request") +
                         " queued",
                     plural(waiting, "job"));
}

std::string sweeper_line(const StatusView& view) {
  const SweeperReport& report = view.report;
  if (report.state == "live")
    return fmt::format("{}looked just now, with {} in {:.1f} s",
                       report.why.empty() ? "" : report.why + "; ",
                       plural(report.calls, "call"),
                       static_cast<double>(report.took.count()) / 1000);
  std::string line = fmt::format("sweeper {}", report.state);
  if (report.state == "passive") line += fmt::format(" ({})", report.why);
  if (report.last_complete != TimePoint{})
    line += fmt::format(", last complete look {} ago", span_text(view.now - report.last_complete));
  if (report.postponed > 0)
    line += fmt::format(", {} put off to its next rounds", plural(report.postponed, "action"));
  return line + fmt::format(", every {}; round {} took {:.1f} s with {}; pid {}",
                            span_text(report.interval),
                            report.round,
                            static_cast<double>(report.took.count()) / 1000,
                            plural(report.calls, "call"),
                            report.pid);
}

/// Its title, and how many of its entries are not below it.
std::string title_of(const Part& part, std::size_t shown) {
  const std::size_t all = part.entries.size();
  std::vector<std::string> words;
  if (shown == 0 && all > 0)
    words.push_back(fmt::format("{} not shown (--all)", all));
  else if (shown < all)
    words.push_back(fmt::format("{} of {} (--all)", shown, all));
  if (!part.unlisted.empty()) words.push_back(part.unlisted);
  return words.empty() ? part.title : fmt::format("{}: {}", part.title, fmt::join(words, ", "));
}

void add_part(std::vector<std::string>& lines,
              const Part& part,
              std::size_t shown,
              const Terminal& terminal) {
  lines.push_back(terminal.paint(Colour::Bold, cut(title_of(part, shown), terminal.width)));
  std::vector<Row> rows;
  rows.reserve(shown);
  for (std::size_t i = 0; i < shown; ++i) {
    rows.push_back(part.entries[i].row);
    rows.back().front().text.insert(0, kIndent);
  }
  const std::vector<std::string> table = format_table(rows, terminal);
  for (std::size_t i = 0; i < shown; ++i) {
    lines.push_back(table[i]);
    const Cell& below = part.entries[i].below;
    if (!below.text.empty())
      lines.push_back(terminal.paint(below.colour, cut("      " + below.text, terminal.width)));
  }
}

/// How many entries of each part are shown. Blank lines between the parts are a luxury.
std::vector<std::size_t> choose(const std::vector<Part>& parts, std::size_t room, bool has_gaps) {
  std::vector<std::vector<std::size_t>> wanted;
  for (const Part& part : parts) {
    std::vector<std::size_t>& sizes = wanted.emplace_back();
    for (std::size_t i = 0; i < std::min(part.entries.size(), part.most); ++i)
      sizes.push_back(part.entries[i].lines());
  }
  return share_lines(wanted, has_gaps ? room - std::min(room, parts.size()) : room);
}

void add_trouble(std::vector<std::string>& lines,
                 const StatusView& view,
                 const Terminal& terminal) {
  constexpr std::size_t kMost = 8;
  const std::size_t all = view.trouble.size();
  const std::size_t most = std::clamp(view.height / 4, std::size_t{1}, kMost);
  const std::size_t shown = view.height == 0 ? all : std::min(all, most);
  for (std::size_t i = 0; i < shown; ++i)
    lines.push_back(terminal.paint(Colour::Red, cut("!! " + view.trouble[i], terminal.width)));
  if (shown < all)
    lines.push_back(
        terminal.paint(Colour::Red, fmt::format("!! and {} more (--all)", all - shown)));
}

}  // namespace

std::vector<std::string> render_status(const StatusView& view, const Terminal& screen) {
  constexpr std::size_t kRoomy = 30;
  const std::vector<Part> parts = parts_of(view, screen);
  // What is to be whole is not cut: the terminal breaks its lines.
  Terminal terminal = screen;
  if (view.height == 0) terminal.width = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> lines;
  add_trouble(lines, view, terminal);
  lines.push_back(terminal.paint(Colour::Bold, cut(headline(view), terminal.width)));
  lines.push_back(cut(sweeper_line(view), terminal.width));
  const std::size_t room = view.height - std::min(view.height, lines.size());
  const bool has_gaps = view.height == 0 || view.height >= kRoomy;
  const std::vector<std::size_t> shown = choose(parts, room, has_gaps);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (has_gaps) lines.emplace_back();
    add_part(lines, parts[i], view.height == 0 ? parts[i].entries.size() : shown[i], terminal);
  }
  if (view.height > 0 && lines.size() > view.height) lines.resize(view.height);
  return lines;
}

}  // namespace flex
