// SPDX-License-Identifier: GPL-2.0-or-later
// flexctl doctor: what is wrong with the set-up, before a job finds out.
#include "ctl/command.h"
#include "ctl/doctor/checks.h"
#include "ctl/doctor/gather.h"
#include "ctl/doctor/report.h"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <unistd.h>

namespace flex {
namespace {

struct DoctorCommand {
  bool is_offline = false;
  bool has_hints = false;
  bool is_read_only = false;
  bool is_json = false;
};

/// One line on a terminal that is written over, and is gone in the end.
class ProgressLine {
 public:
  void operator()(std::string_view what) const {
    if (is_shown_) std::cerr << "\r\033[Kchecking " << what << " …" << std::flush;
  }

  void clear() const {
    if (is_shown_) std::cerr << "\r\033[K" << std::flush;
  }

 private:
  bool is_shown_ = ::isatty(STDERR_FILENO) == 1;
};

int run_doctor(const DoctorCommand& command, const Options& options, const Log& log) {
  const ProgressLine progress;
  const doctor::Facts facts = doctor::gather({.config_file = config_path(options),
                                              .is_offline = command.is_offline,
                                              .is_read_only = command.is_read_only},
                                             progress);
  progress.clear();
  const doctor::Findings findings = doctor::check_all(facts);
  for (const doctor::Finding& finding : findings)
    log.info("finding",
             {{"id", finding.id},
              {"severity", doctor::to_string(finding.severity)},
              {"what", finding.what}});
  std::cout << (command.is_json
                    ? doctor::to_json_text(facts, findings)
                    : doctor::to_text(facts, findings, standard_output(), command.has_hints))
            << std::flush;
  return doctor::exit_code(findings);
}

}  // namespace

void add_doctor(CLI::App& app, Command& command) {
  CLI::App* const own =
      app.add_subcommand("doctor", "what is wrong with the set-up, and the line to change");
  own->fallthrough();
  const auto chosen = std::make_shared<DoctorCommand>();
  own->add_flag("--offline", chosen->is_offline, "only files: neither slurmctld nor Google Cloud");
  own->add_flag("--fix-hints", chosen->has_hints, "also the lines to write and commands to run");
  own->add_flag("--read-only", chosen->is_read_only, "no harmless writes to find out permissions");
  own->add_flag("--json", chosen->is_json, "as JSON");
  own->callback([&command, chosen] {
    command.run = [chosen](const Options& options, const Log& log) {
      return run_doctor(*chosen, options, log);
    };
  });
}

}  // namespace flex
