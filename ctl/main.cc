// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl: the operator's command.
#include "ctl/command.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <string_view>

namespace {

/// What it does it prints; it keeps a log only where it is told to.
flex::Result<flex::Log> open_own_log(const flex::Options& options) {
  if (!options.log_file.empty()) return flex::open_log(options, "flexctl");
  return flex::Log{[](flex::LogLevel, std::string_view) {}, options.log_level};
}

}  // namespace

int main(int argc, char** argv) {
  flex::prepare_process();
  flex::Command command;
  const auto parsed =
      flex::parse_options(argc,
                          argv,
                          "flexctl",
                          "Looks after slurm-flex-start: see flexctl COMMAND --help",
                          [&](CLI::App& app) {
                            app.require_subcommand(1);
                            flex::add_status(app, command);
                            flex::add_plan(app, command);
                            flex::add_cancel(app, command);
                            flex::add_pause(app, command);
                            flex::add_resume(app, command);
                            flex::add_sweep(app, command);
                            flex::add_slurm_conf(app, command);
                            flex::add_doctor(app, command);
                            flex::add_explain(app, command);
                            flex::add_import(app, command);
                            flex::add_completion(app, command);
                          });
  if (parsed.exit_code) return *parsed.exit_code;
  const auto log = open_own_log(parsed.options);
  if (!log) {
    std::cerr << "flexctl: " << log.error().what << '\n';
    return flex::kExitUsage;
  }
  return command.run(parsed.options, *log);
}
