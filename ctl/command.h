// SPDX-License-Identifier: GPL-2.0-or-later
// How a subcommand of flexctl is made: each has a file of its own, which adds its options to the
// command line and says what is to be run.
#pragma once

#include "lib/core/log.h"
#include "lib/core/program.h"

#include <functional>

namespace CLI {
class App;
}  // namespace CLI

namespace flex {

/// What was chosen on the command line; returns the exit code.
struct Command {
  std::function<int(const Options& options, const Log& log)> run{};
};

/// `flexctl doctor`: what is wrong with the set-up, and the line to change.
void add_doctor(CLI::App& app, Command& command);
/// `flexctl import`: a neighbour's file to flex-start.yaml.
void add_import(CLI::App& app, Command& command);

/// `flexctl cancel`: a request that waits.
void add_cancel(CLI::App& app, Command& command);
/// `flexctl pause` and `flexctl resume`: the breaker of a nodeset.
void add_pause(CLI::App& app, Command& command);
void add_resume(CLI::App& app, Command& command);
/// `flexctl sweep --once`.
void add_sweep(CLI::App& app, Command& command);
/// `flexctl plan`: what would be asked of Google.
void add_plan(CLI::App& app, Command& command);
/// `flexctl slurm-conf`: what slurm.conf needs.
void add_slurm_conf(CLI::App& app, Command& command);
/// `flexctl completion`: for shells.
void add_completion(CLI::App& app, Command& command);
/// `flexctl status`: nodesets, requests and VMs as the sweeper sees them.
void add_status(CLI::App& app, Command& command);

/// `flexctl explain`: the story of a job, a node or a request.
void add_explain(CLI::App& app, Command& command);

}  // namespace flex
