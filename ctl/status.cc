// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl status: what the sweeper sees, for people.
#include "ctl/command.h"
#include "ctl/setup.h"
#include "ctl/status/render.h"
#include "ctl/status/report.h"
#include "ctl/status/source.h"
#include "ctl/status/watch.h"
#include "ctl/terminal.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kWholeLines = 10'000'000;
constexpr std::size_t kLeastHeight = 4;

struct StatusCommand {
  std::vector<std::string> nodesets{};
  int watch = 0;
  bool is_json = false;
  bool is_live = false;
  bool is_all = false;
};

/// What was read, and what is wrong.
struct Shown {
  StatusText source{};
  SweeperReport report{};
  std::vector<std::string> trouble{};
};

Result<Shown> look_at(StatusSource& source, const StatusCommand& command) {
  auto text = source.read();
  if (!text) return std::move(text).error();
  auto report = parse_report(text->text);
  if (!report) return report.error().in(text->where);
  Shown picture{.source = std::move(*text),
                .report = only_of(std::move(*report), command.nodesets),
                .trouble = {}};
  picture.trouble = picture.source.trouble;
  std::ranges::move(find_trouble(picture.report, wall_clock()),
                    std::back_inserter(picture.trouble));
  return picture;
}

bool is_about(const nlohmann::json& item,
              const char* key,
              const std::vector<std::string>& nodesets) {
  const std::string name = item.is_object() ? item.value(key, "") : "";
  return std::find(nodesets.begin(), nodesets.end(), name) != nodesets.end();
}

/// The sweeper's own words, of the nodesets that were asked for, and where they are from.
nlohmann::json to_json(const Shown& picture, const StatusCommand& command) {
  auto json = nlohmann::json::parse(picture.source.text, nullptr, false);
  for (const char* list : {"nodesets", "requests", "vms", "jobs"}) {
    if (command.nodesets.empty() || !json.contains(list) || !json[list].is_array()) continue;
    const char* const key = list == std::string_view("nodesets") ? "name" : "nodeset";
    auto kept = nlohmann::json::array();
    for (auto& item : json[list]) {
      if (is_about(item, key, command.nodesets)) kept.push_back(std::move(item));
    }
    json[list] = std::move(kept);
  }
  const TimePoint now = wall_clock();
  json["source"] = {{"from", picture.source.from},
                    {"where", picture.source.where},
                    {"age_seconds", (now - picture.report.written).count()},
                    {"is_stale", is_stale(picture.report, now)}};
  json["trouble"] = picture.trouble;
  return json;
}

/// `indent` -1: all in one line.
std::string dump(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// One line of a terminal is the prompt's. What reads a pipe wants whole lines.
std::vector<std::string> to_lines(const Shown& picture, Terminal terminal, bool is_all) {
  if (!terminal.is_terminal) terminal.width = kWholeLines;
  const bool is_whole = is_all || !terminal.is_terminal;
  return render_status({.report = picture.report,
                        .now = wall_clock(),
                        .trouble = picture.trouble,
                        .height = is_whole ? 0 : std::max(terminal.height, kLeastHeight) - 1},
                       terminal);
}

int show_once(StatusSource& source, const StatusCommand& command) {
  const auto picture = look_at(source, command);
  if (!picture) return complain(picture.error().what, kExitFailed);
  if (command.is_json) {
    std::cout << dump(to_json(*picture, command), 1) << '\n' << std::flush;
  } else {
    for (const std::string& line : to_lines(*picture, standard_output(), command.is_all))
      std::cout << line << '\n';
    std::cout << std::flush;
    if (picture->source.from == "file" && is_stale(picture->report, wall_clock()))
      complain("this is old: --live looks at Slurm and Compute Engine without the sweeper",
               kExitOk);
  }
  if (!std::cout) return complain("standard output: cannot be written", kExitFailed);
  return picture->trouble.empty() ? kExitOk : kExitFailed;
}

std::vector<std::string> draw(StatusSource& source,
                              const StatusCommand& command,
                              const Terminal& terminal) {
  const auto picture = look_at(source, command);
  // It may come back: a sweeper that is started again, a slurmctld that is.
  if (!picture && command.is_json) return {dump({{"trouble", {picture.error().what}}}, -1)};
  if (!picture) return {terminal.paint(Colour::Red, "!! " + printable(picture.error().what))};
  if (command.is_json) return {dump(to_json(*picture, command), -1)};
  return to_lines(*picture, terminal, false);
}

int keep_showing(StatusSource& source, const StatusCommand& command) {
  run_watch({.interval = std::chrono::seconds{command.watch},
             .is_plain = command.is_json,
             .doing = [&] { return source.doing(); },
             .draw = [&](const Terminal& terminal) { return draw(source, command, terminal); }});
  return kExitOk;
}

int run_status(const StatusCommand& command, const Options& options) {
  auto setup = open_setup(options);
  if (!setup) return kExitUsage;
  for (const std::string& name : command.nodesets) {
    if (const auto found = find_nodeset(setup->config, name); !found)
      return complain(found.error().what, kExitUsage);
  }
  StatusSource source{*setup, command.is_live};
  return command.watch > 0 ? keep_showing(source, command) : show_once(source, command);
}

}  // namespace

void add_status(CLI::App& app, Command& command) {
  CLI::App* const status =
      app.add_subcommand("status", "nodesets, requests, VMs and jobs as the sweeper sees them");
  status->fallthrough();
  const auto own = std::make_shared<StatusCommand>();
  status->add_option("nodeset", own->nodesets, "only these; default: all")->type_name("NODESET");
  status
      ->add_flag("--watch{2}",
                 own->watch,
                 "draw it again every 2 s, or as often as --watch=SECONDS says, until Ctrl-C")
      ->check(CLI::Range(1, 3600));
  status->add_flag("--json", own->is_json, "the sweeper's status.json, and where it is from");
  status->add_flag(
      "--live", own->is_live, "look at slurmctld and Compute Engine instead of asking the sweeper");
  status->add_flag("--all", own->is_all, "all lines, not only as many as the terminal has");
  status->callback([&command, own] {
    command.run = [own](const Options& options, const Log&) { return run_status(*own, options); };
  });
}

}  // namespace flex
