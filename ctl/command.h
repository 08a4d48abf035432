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

/// `flexctl import`: a neighbour's file to flex-start.yaml.
void add_import(CLI::App& app, Command& command);

/// `flexctl status`: nodesets, requests and VMs as the sweeper sees them.
void add_status(CLI::App& app, Command& command);

/// `flexctl explain`: the story of a job, a node or a request.
void add_explain(CLI::App& app, Command& command);

}  // namespace flex
