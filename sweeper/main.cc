// SPDX-License-Identifier: GPL-2.0-or-later
// flex-sweeper: whatever flex-resume, flex-suspend, Google or an admin left half done, it finishes.
#include "lib/config/load.h"
#include "lib/core/log.h"
#include "lib/core/program.h"
#include "lib/core/state_file.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/session.h"
#include "lib/slurm/libslurm_scheduler.h"
#include "sweeper/loop.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace flex {

namespace {

/// The next round tries again anyway, and a signal should not wait long.
constexpr RetryPolicy kRetry{.limit = 4};

struct SweeperOptions {
  bool is_once = false;
  bool is_dry_run = false;
  bool is_foreground = false;
  std::uint64_t rounds = 0;
  int interval = -1;
};

Result<Reloaded> reload(const Options& options, const Log& log) {
  LoadedConfig loaded = load_config(config_path(options), slurm_user_id());
  if (!loaded.ok()) {
    std::vector<std::string> problems;
    for (const Problem& problem : loaded.problems) {
      log.error("bad_config", {{"why", problem.text()}});
      problems.push_back(problem.text());
    }
    return Error{ErrorKind::Invalid, fmt::format("{}", fmt::join(problems, "; "))};
  }
  auto cloud = open_cloud(loaded.config, kRetry);
  if (!cloud) return std::move(cloud).error();
  return Reloaded{.config = std::move(loaded.config), .cloud = std::move(*cloud)};
}

int complain(const Log& log, std::string_view event, const std::string& why) {
  log.error(event, {{"why", why}});
  std::cerr << "flex-sweeper: " << why << '\n';
  return kExitFailed;
}

/// Everybody else is refused by slurmctld, and cannot write where it keeps its state. Empty: it is
/// SlurmUser, or root.
std::string why_not_this_user() {
  const auto wanted = slurm_user_id();
  const uid_t user = ::geteuid();
  if (!wanted || user == *wanted || user == 0) return {};
  return fmt::format(
      "it runs as user {}, and SlurmUser of slurm.conf is user {}: run it as that one (under "
      "systemd: systemctl edit flex-sweeper, and the two lines [Service] and User={})",
      user,
      *wanted,
      *wanted);
}

int sweep(const Options& options, const SweeperOptions& more, const Log& log) {
  auto session = open_session(options, log, kRetry);
  if (!session) return kExitUsage;
  const auto controller = session->scheduler->find_controller();
  // On login nodes and VMs, which share the controller's files, it never has anything to write.
  const bool is_needed = !more.is_dry_run && (!controller || controller->is_candidate);
  if (const std::string why = why_not_this_user(); is_needed && !why.empty()) {
    complain(log, "wrong_user", why);
    return kExitUsage;
  }
  auto state_dir = find_state_dir(session->config, *session->scheduler);
  if (state_dir && !more.is_dry_run) {
    if (auto made = make_directory(*state_dir); !made) state_dir = made.error();
  }
  if (!state_dir && is_needed) return complain(log, "no_state_dir", state_dir.error().what);
  LoopOptions loop_options{.is_dry_run = more.is_dry_run,
                           .rounds = more.is_once ? 1 : more.rounds,
                           .interval = {},
                           .state_dir = state_dir ? *state_dir : std::string{},
                           .slurm_user = slurm_user_id()};
  if (more.interval >= 0) loop_options.interval = std::chrono::seconds{more.interval};
  Loop loop{{.config = std::move(session->config),
             .cluster = std::move(session->cluster),
             .scheduler = std::move(session->scheduler),
             .cloud = std::move(session->cloud),
             .reload = [&] { return reload(options, log); }},
            std::move(loop_options),
            log};
  // Where another host is in charge the lock is left to its sweeper.
  if (controller && controller->is_here) {
    if (auto locked = loop.lock(); !locked)
      return complain(log, "already_running", locked.error().what);
  }
  return loop.run();
}

void add_options(CLI::App& app, SweeperOptions& more) {
  app.add_flag("--once", more.is_once, "one round, then exit: 0 all done, 1 something failed");
  app.add_flag("--dry-run", more.is_dry_run, "print what would be done, and do nothing");
  app.add_flag("--foreground", more.is_foreground, "log to standard error, too");
  app.add_option("--rounds", more.rounds, "exit after so many rounds")
      ->check(CLI::Range(1, 1000000000));
  app.add_option("--interval", more.interval, "seconds between rounds, instead of sweeper.interval")
      ->check(CLI::Range(0, 86400));
}

}  // namespace

}  // namespace flex

int main(int argc, char** argv) {
  flex::prepare_process();
  flex::hold_signals();
  flex::SweeperOptions more;
  auto parsed = flex::parse_options(
      argc,
      argv,
      "flex-sweeper",
      "Brings right whatever was left half done: requests, VMs, groups, nodes and jobs",
      [&](CLI::App& app) { flex::add_options(app, more); });
  if (parsed.exit_code) return *parsed.exit_code;
  parsed.options.is_foreground = more.is_foreground;
  const auto log = flex::open_log(parsed.options, "flex-sweeper");
  if (!log) {
    std::cerr << "flex-sweeper: " << log.error().what << '\n';
    return flex::kExitUsage;
  }
  return flex::sweep(parsed.options, more, *log);
}
