// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/options.h"

#include "lib/core/duration.h"
#include "lib/core/job_wish.h"
#include "plugin/slurm_calls.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace flex::plugin {

namespace {

enum Option : int { kRun, kWait, kOnTimeout };

constexpr std::array<const char*, 3> kNames = {
    "flex-run-duration", "flex-max-wait", "flex-on-timeout"};
/// How Slurm spells them in the environment.
constexpr std::array<const char*, 3> kVariables = {
    "_SLURM_SPANK_OPTION_flex_start_flex_run_duration",
    "_SLURM_SPANK_OPTION_flex_start_flex_max_wait",
    "_SLURM_SPANK_OPTION_flex_start_flex_on_timeout"};

/// Slurm's callbacks have no argument of ours. A component of a job begins with what the one before
/// it said, as with --time.
struct State {
  Arguments arguments{};
  JobWish wish{};
};

State& state() {
  static State the_state;
  return the_state;
}

int refuse(const std::string& why) {
  slurm_error("flex-start: %s", why.c_str());
  return ESPANK_ERROR;
}

template <class T>
int keep(std::optional<T>& place, Result<T> value) {
  if (!value) return refuse(value.error().what);
  place = *value;
  return ESPANK_SUCCESS;
}

int take(int option, std::string_view value) {
  const std::string name = fmt::format("--{}", kNames.at(static_cast<std::size_t>(option)));
  auto& [arguments, wish] = state();
  switch (option) {
    case kRun:
      return keep(wish.run, parse_run(name, value, arguments.max_run));
    case kWait:
      return keep(wish.wait, parse_wait(name, value, arguments.max_wait));
    default:
      return keep(wish.on_timeout, parse_on_timeout(name, value));
  }
}

/// Slurm's callback: anything but success refuses the submission.
int on_option(int option, const char* value, int remote) {
  if (remote != 0) return ESPANK_SUCCESS;
  try {
    if (const int taken = take(option, value == nullptr ? "" : value); taken != ESPANK_SUCCESS)
      return taken;
    if (!ProgramOptions::find())
      return refuse(
          "this release of Slurm does not let a plugin set a job's comment; write "
          "--comment='flex(run=4h,wait=30m,ontimeout=hold)' instead");
    return ESPANK_SUCCESS;
  } catch (...) {
    return ESPANK_ERROR;
  }
}

bool register_option(spank_t spank, Option option, std::string argument, std::string usage) {
  std::string name = kNames.at(option);
  spank_option entry{.name = name.data(),
                     .arginfo = argument.data(),
                     .usage = usage.data(),
                     .has_arg = 1,
                     .val = option,
                     .cb = &on_option};
  return spank_option_register(spank, &entry) == ESPANK_SUCCESS;
}

/// Slurm would hand them to all that the job starts, as if its author had typed them there again.
void keep_from_heirs(spank_t spank) {
  for (const char* name : kVariables) {
    ::unsetenv(name);
    spank_job_control_unsetenv(spank, name);
  }
}

}  // namespace

bool register_options(spank_t spank, const Arguments& arguments) {
  state().arguments = arguments;
  return register_option(spank,
                         kRun,
                         "TIME",
                         fmt::format("ask for Flex Start VMs that live this long, instead of the "
                                     "time limit and a margin (10m to {})",
                                     format_duration(arguments.max_run))) &&
         register_option(spank,
                         kWait,
                         "TIME",
                         fmt::format("wait this long for Flex Start capacity at most (up to {})",
                                     format_duration(arguments.max_wait))) &&
         register_option(spank,
                         kOnTimeout,
                         "requeue|hold|cancel",
                         "what becomes of the job when that time is over");
}

bool pass_wish_on(spank_t spank) {
  keep_from_heirs(spank);
  const JobWish& wish = state().wish;
  if (wish.is_empty()) return true;
  const auto program = ProgramOptions::find();
  if (!program) return false;
  const std::string job = program->get("jobid");
  if (!job.empty() && job.find_first_not_of("0123456789") == std::string::npos) {
    slurm_info("flex-start: the --flex options are for new jobs; this is a step of job %s",
               job.c_str());
    return true;
  }
  if (program->set("comment", with_wish(program->get("comment"), wish))) return true;
  refuse("cannot set the job's comment; write --comment='flex(run=4h)' instead");
  return false;
}

void clear_option_variables(spank_t spank) {
  for (const char* name : kVariables)
    spank_unsetenv(spank, fmt::format("SLURM_SPANK_{}", name).c_str());
}

}  // namespace flex::plugin
