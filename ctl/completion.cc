// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl completion: scripts for shells, and the names that they ask for.
#include "ctl/command.h"
#include "ctl/completion_script.h"
#include "ctl/setup.h"
#include "ctl/status/report.h"
#include "lib/config/load.h"
#include "lib/core/names.h"
#include "lib/core/state_file.h"
#include "lib/slurm/libslurm_scheduler.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostStatus = std::size_t{64} << 20U;

struct CompletionCommand {
  std::string what{};
  bool is_json = false;
  CompletedCommand tree{};
};

/// They go into somebody's command line: what cannot be a name is left out.
void add_name(std::vector<std::string>& names, const std::string& name) {
  if (is_rfc1035(name)) names.push_back(name);
}

/// Nothing is said of what is wrong: somebody has just pressed a key.
std::vector<std::string> nodesets(const Options& options) {
  // Slurm knows to whom the config may belong.
  const auto slurm = open_libslurm();
  const LoadedConfig loaded = load_config(config_path(options), slurm_user_id());
  std::vector<std::string> names;
  names.reserve(loaded.config.nodesets.size());
  for (const NodesetConfig& nodeset : loaded.config.nodesets) add_name(names, nodeset.name);
  return names;
}

/// Those that wait, as the sweeper has written: Compute Engine would take too long to ask.
std::vector<std::string> requests(const Options& options) {
  auto setup = open_setup(options);
  if (!setup) return {};
  const auto state_dir = state_dir_of(*setup);
  if (!state_dir) return {};
  const auto text = read_small_file(*state_dir + "/status.json", kMostStatus);
  if (!text) return {};
  const auto report = parse_report(*text);
  std::vector<std::string> names;
  if (!report) return names;
  for (const RequestReport& request : report->requests) {
    if (request.is_waiting()) add_name(names, request.name);
  }
  return names;
}

int print_names(const CompletionCommand& command, const std::vector<std::string>& names) {
  if (command.is_json)
    std::cout << nlohmann::json(names).dump() << '\n';
  else
    for (const std::string& name : names) std::cout << name << '\n';
  std::cout << std::flush;
  return kExitOk;
}

int run_completion(const CompletionCommand& command, const Options& options) {
  if (command.what == "nodesets") return print_names(command, nodesets(options));
  if (command.what == "requests") return print_names(command, requests(options));
  const std::string script =
      command.what == "bash" ? bash_script(command.tree) : zsh_script(command.tree);
  if (command.is_json)
    std::cout << nlohmann::json{{"shell", command.what}, {"script", script}}.dump(1) << '\n';
  else
    std::cout << script;
  std::cout << std::flush;
  return std::cout ? kExitOk : complain("standard output: cannot be written", kExitFailed);
}

}  // namespace

void add_completion(CLI::App& app, Command& command) {
  CLI::App* const completion = app.add_subcommand(
      "completion", "a script that completes flexctl's words in a shell, or the words themselves");
  completion->fallthrough();
  const auto own = std::make_shared<CompletionCommand>();
  completion->add_option("what", own->what, "a shell, or the names of nodesets or requests")
      ->check(CLI::IsMember({"bash", "zsh", "nodesets", "requests"}))
      ->type_name("bash|zsh|nodesets|requests")
      ->required();
  completion->add_flag("--json", own->is_json, "as JSON");
  completion->callback([&command, own, &app] {
    // The tree is gone when the command is run.
    own->tree = to_tree(app);
    command.run = [own](const Options& options, const Log&) {
      return run_completion(*own, options);
    };
  });
}

}  // namespace flex
