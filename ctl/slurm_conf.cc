// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl slurm-conf: the lines of slurm.conf and plugstack.conf that flex-start.yaml needs.
#include "ctl/command.h"
#include "ctl/places.h"
#include "ctl/setup.h"
#include "ctl/slurm_conf_text.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace flex {

namespace {

struct SlurmConfCommand {
  std::string version{};
  bool is_plugstack = false;
  bool is_json = false;
};

void print(const std::vector<std::string>& lines, bool is_comment = false) {
  for (const std::string& line : lines)
    std::cout << (is_comment && !line.starts_with('#') ? "#" : "") << line << '\n';
}

int run_slurm_conf(const SlurmConfCommand& command, const Options& options) {
  SlurmRelease release = library_release();
  if (!command.version.empty()) {
    const auto parsed = parse_slurm_release(command.version);
    if (!parsed) return complain("--slurm-version: " + parsed.error().what, kExitUsage);
    release = *parsed;
  }
  const auto setup = open_setup(options);
  if (!setup) return kExitUsage;
  const SlurmConfInput input{.config = setup->config,
                             .release = release,
                             .sbindir = FLEX_SBINDIR,
                             .plugin = FLEX_PLUGIN_DIR "/spank_flex_start.so"};
  const auto conf = slurm_conf_lines(input);
  const auto plugstack = plugstack_lines(input);
  if (command.is_json) {
    std::cout << nlohmann::json{{"slurm_version", to_string(release)},
                                {"slurm_conf", conf},
                                {"plugstack_conf", plugstack}}
                     .dump(1)
              << '\n';
  } else if (command.is_plugstack) {
    print(plugstack);
  } else {
    print(conf);
    std::cout << '\n';
    // All of what is printed may go into slurm.conf.
    print(plugstack, true);
  }
  std::cout << std::flush;
  return std::cout ? kExitOk : complain("standard output: cannot be written", kExitFailed);
}

}  // namespace

void add_slurm_conf(CLI::App& app, Command& command) {
  CLI::App* const conf = app.add_subcommand(
      "slurm-conf", "the lines of slurm.conf and plugstack.conf that flex-start.yaml needs");
  conf->fallthrough();
  const auto own = std::make_shared<SlurmConfCommand>();
  conf->add_option("--slurm-version", own->version, "for this release (default: libslurm's own)")
      ->type_name("RELEASE");
  conf->add_flag("--plugstack", own->is_plugstack, "only the lines of plugstack.conf");
  conf->add_flag("--json", own->is_json, "the lines as JSON");
  conf->callback([&command, own] {
    command.run = [own](const Options& options, const Log&) {
      return run_slurm_conf(*own, options);
    };
  });
}

}  // namespace flex
