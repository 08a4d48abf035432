// SPDX-License-Identifier: GPL-2.0-or-later
// What flexctl's commands open first, and how they complain.
#pragma once

#include "lib/config/config.h"
#include "lib/core/program.h"
#include "lib/fleet/history.h"
#include "lib/slurm/scheduler.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Config, and Slurm where it can be had: not every command needs it.
struct Setup {
  Config config{};
  std::unique_ptr<Scheduler> scheduler{};  ///< null: slurm.conf cannot be read
  std::string why_no_slurm{};
};

/// Nothing if the config is bad: all of its problems are printed.
[[nodiscard]] std::optional<Setup> open_setup(const Options& options);

/// The config's cluster, or Slurm's own name; the error says what to do.
[[nodiscard]] Result<std::string> cluster_of(Setup& setup);
/// Where the sweeper keeps what it knows; the error says what to do.
[[nodiscard]] Result<std::string> state_dir_of(Setup& setup);

/// 2 for what is wrong with what was typed or with a file, 1 for what cannot be had now.
[[nodiscard]] int exit_code_of(const Error& error);

/// Prints "flexctl: <what>" on standard error; the code.
int complain(std::string_view what, int code);

/// Who gives the command: behind sudo, who typed it.
[[nodiscard]] std::string user_name();

[[nodiscard]] TimePoint wall_clock();

/// The nodeset of this name. If there is none, a sentence with those that there are.
[[nodiscard]] Result<const NodesetConfig*> find_nodeset(const Config& config,
                                                        const std::string& name);

/// Appends events of flexctl's own: who, when and by which program is filled in. What cannot be
/// written is lost.
void tell_history(const std::string& state_dir, std::vector<Event> events);

}  // namespace flex
