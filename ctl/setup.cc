// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/setup.h"

#include "ctl/terminal.h"
#include "lib/config/load.h"
#include "lib/fleet/queue.h"
#include "lib/slurm/libslurm_scheduler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace flex {

std::optional<Setup> open_setup(const Options& options) {
  Setup setup;
  // Slurm first: only it knows SlurmUser, to whom the config may belong.
  auto scheduler = open_libslurm();
  if (scheduler)
    setup.scheduler = std::move(*scheduler);
  else
    setup.why_no_slurm = scheduler.error().what;
  LoadedConfig loaded = load_config(config_path(options), slurm_user_id());
  for (const Problem& problem : loaded.problems) complain(problem.text(), kExitUsage);
  if (!loaded.ok()) return std::nullopt;
  setup.config = std::move(loaded.config);
  return setup;
}

Result<std::string> cluster_of(Setup& setup) {
  constexpr std::string_view kHint = "set 'cluster' in flex-start.yaml to do without Slurm";
  if (!setup.config.cluster.empty()) return setup.config.cluster;
  if (setup.scheduler == nullptr)
    return Error{ErrorKind::Invalid, fmt::format("{}; {}", setup.why_no_slurm, kHint)};
  auto name = setup.scheduler->load_cluster_name();
  if (!name) return Error{name.error().kind, fmt::format("{}; {}", name.error().what, kHint)};
  return name;
}

Result<std::string> state_dir_of(Setup& setup) {
  constexpr std::string_view kHint =
      "set 'sweeper.state_dir' in flex-start.yaml to find it without slurmctld";
  if (!setup.config.sweeper.state_dir.empty()) return setup.config.sweeper.state_dir;
  if (setup.scheduler == nullptr)
    return Error{ErrorKind::Invalid, fmt::format("{}; {}", setup.why_no_slurm, kHint)};
  auto found = find_state_dir(setup.config, *setup.scheduler);
  if (found) return found;
  // slurmctld is away: its own slurm.conf is the next best.
  if (const std::string own = slurm_conf_state_dir(); !own.empty()) return own + "/flex-start";
  return Error{found.error().kind, fmt::format("{}; {}", found.error().what, kHint)};
}

int exit_code_of(const Error& error) {
  return error.kind == ErrorKind::Invalid ? kExitUsage : kExitFailed;
}

int complain(std::string_view what, int code) {
  std::cerr << "flexctl: " << printable(what) << '\n';
  return code;
}

std::string user_name() {
  constexpr uid_t kRoot = 0;
  const std::string before_sudo = environment("SUDO_USER");
  if (::getuid() == kRoot && !before_sudo.empty()) return printable(before_sudo);
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const int failed = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  return failed == 0 && found != nullptr ? found->pw_name : fmt::format("uid {}", ::getuid());
}

TimePoint wall_clock() {
  return std::chrono::floor<Seconds>(std::chrono::system_clock::now());
}

Result<const NodesetConfig*> find_nodeset(const Config& config, const std::string& name) {
  std::vector<std::string> known;
  for (const NodesetConfig& nodeset : config.nodesets) {
    if (nodeset.name == name) return &nodeset;
    known.push_back(nodeset.name);
  }
  std::sort(known.begin(), known.end());
  return Error{ErrorKind::Invalid,
               fmt::format("there is no nodeset '{}' in {}: it has {}",
                           printable(name),
                           config.file,
                           known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")))};
}

void tell_history(const std::string& state_dir, std::vector<Event> events) {
  for (Event& event : events) {
    event.when = wall_clock();
    event.program = "flexctl";
    event.more["user"] = user_name();
  }
  if (const auto told = append_history(state_dir, events); !told)
    complain(fmt::format("the history does not tell of it: {}", told.error().what), kExitOk);
}

}  // namespace flex
