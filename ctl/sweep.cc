// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl sweep --once: one round of the sweeper, in this process.
#include "ctl/command.h"
#include "ctl/setup.h"
#include "ctl/terminal.h"
#include "lib/core/state_file.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/libslurm_scheduler.h"
#include "sweeper/loop.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <utility>

namespace flex {

namespace {

constexpr RetryPolicy kRetry{.limit = 4};

struct SweepCommand {
  bool is_once = false;
  bool is_dry_run = false;
  bool is_json = false;
};

nlohmann::json to_json(const Action& action) {
  const std::vector<NodeName> nodes = nodes_of(action);
  return {{"rule", to_string(action.rule)},
          {"what", kind_text(action)},
          {"target", target_of(action)},
          {"job", job_of(action)},
          {"nodes", fold_hostlist(nodes)},
          {"n", nodes.size()},
          {"why", action.why}};
}

std::string to_line(const Action& action) {
  const std::vector<NodeName> nodes = nodes_of(action);
  std::string line = fmt::format("{}: {}", to_string(action.rule), kind_text(action));
  if (const std::string target = target_of(action); !target.empty()) line += " " + target;
  if (const JobId job = job_of(action); job != 0) line += fmt::format(" job {}", job);
  if (!nodes.empty()) line += " " + fold_hostlist(nodes);
  return fmt::format("{} ({})", line, action.why);
}

void print(const SweepCommand& command, const std::vector<Action>& actions, bool is_ok) {
  if (command.is_json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Action& action : actions) list.push_back(to_json(action));
    std::cout << nlohmann::json{{"dry_run", command.is_dry_run},
                                {"ok", is_ok},
                                {"actions", std::move(list)}}
                     .dump(1, ' ', false, nlohmann::json::error_handler_t::replace)
              << '\n';
  } else {
    for (const Action& action : actions)
      std::cout << (command.is_dry_run ? "would: " : "") << printable(to_line(action)) << '\n';
    if (actions.empty() && is_ok) std::cout << "Nothing to do: all is as it should be\n";
  }
  std::cout << std::flush;
}

/// What goes wrong is printed; all of it is in the log, if there is one.
Result<Log> open_loud_log(const Options& options) {
  Log::Sink file;
  if (!options.log_file.empty()) {
    auto opened = file_sink(options.log_file, "flexctl");
    if (!opened) return std::move(opened).error();
    file = std::move(*opened);
  }
  return Log{[file = std::move(file)](LogLevel level, std::string_view line) {
               if (file) file(level, line);
               if (level >= LogLevel::Warning) complain(line, kExitOk);
             },
             options.log_level};
}

int refuse(const Error& error, const Config& config) {
  if (error.code != "LOCKED") return complain(error.what, kExitFailed);
  return complain(
      fmt::format("{}: it sweeps every {} s by itself, and nothing was done here; --dry-run works "
                  "beside it",
                  error.what,
                  config.sweeper.interval.count()),
      kExitFailed);
}

int run_sweep(const SweepCommand& command, const Options& options) {
  const auto log = open_loud_log(options);
  if (!log) return complain(log.error().what, kExitUsage);
  auto session = open_session(options, *log, kRetry);
  if (!session) return kExitUsage;
  const auto controller = session->scheduler->find_controller();
  if (!controller) return complain(controller.error().what, kExitFailed);
  if (!controller->is_here)
    return complain(fmt::format("slurmctld is in charge on {}: sweep there", controller->host),
                    kExitFailed);
  auto state_dir = find_state_dir(session->config, *session->scheduler);
  if (!state_dir) return complain(state_dir.error().what, kExitFailed);
  if (!command.is_dry_run) {
    if (const auto made = make_directory(*state_dir); !made)
      return complain(made.error().what, kExitFailed);
  }
  std::vector<Action> actions;
  const Config config = session->config;
  hold_signals();
  Loop loop{{.config = std::move(session->config),
             .cluster = std::move(session->cluster),
             .scheduler = std::move(session->scheduler),
             .cloud = std::move(session->cloud),
             .reload =
                 [] {
                   return Error{ErrorKind::Precondition, "one round only"};
                 }},
            {.is_dry_run = command.is_dry_run,
             .rounds = 1,
             .interval = {},
             .state_dir = *state_dir,
             .slurm_user = slurm_user_id(),
             .show = [&](const std::vector<Action>& decided) { actions = decided; }},
            *log};
  if (const auto locked = loop.lock(); !locked) return refuse(locked.error(), config);
  const int code = loop.run();
  print(command, actions, code == kExitOk);
  return code;
}

}  // namespace

void add_sweep(CLI::App& app, Command& command) {
  CLI::App* const sweep =
      app.add_subcommand("sweep", "one round of the sweeper, while none runs as a daemon");
  sweep->fallthrough();
  const auto own = std::make_shared<SweepCommand>();
  sweep->add_flag("--once", own->is_once, "one round; the daemon is flex-sweeper")->required();
  sweep->add_flag("--dry-run", own->is_dry_run, "print what would be done, and do nothing");
  sweep->add_flag("--json", own->is_json, "the actions as JSON");
  sweep->callback([&command, own] {
    command.run = [own](const Options& options, const Log&) { return run_sweep(*own, options); };
  });
}

}  // namespace flex
