// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/options.h"

#include "lib/core/duration.h"
#include "lib/core/job_wish.h"
#include "plugin/slurm_calls.h"
#include "plugin/variables.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace flex::plugin {

namespace {

enum class Option : int { Run, Wait, OnTimeout };

struct OptionNames {
  const char* option;
  const char* variable;  ///< how Slurm spells it in the environment
};

constexpr std::array<OptionNames, 3> kNames{{
    {"flex-run-duration", "_SLURM_SPANK_OPTION_flex_start_flex_run_duration"},
    {"flex-max-wait", "_SLURM_SPANK_OPTION_flex_start_flex_max_wait"},
    {"flex-on-timeout", "_SLURM_SPANK_OPTION_flex_start_flex_on_timeout"},
}};

const char* name_of(Option option) {
  return kNames.at(static_cast<std::size_t>(option)).option;
}

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

bool refuse(const std::string& why) {
  slurm_error("flex-start: %s", why.c_str());
  return false;
}

template <class T>
bool keep(std::optional<T>& place, const Result<T>& value) {
  if (!value) return refuse(value.error().what);
  place = *value;
  return true;
}

bool take(Option option, std::string_view value) {
  const std::string name = fmt::format("--{}", name_of(option));
  auto& [arguments, wish] = state();
  switch (option) {
    case Option::Run:
      return keep(wish.run, parse_run(name, value, arguments.max_run));
    case Option::Wait:
      return keep(wish.wait, parse_wait(name, value, arguments.max_wait));
    case Option::OnTimeout:
      return keep(wish.on_timeout, parse_on_timeout(name, value));
  }
  return false;
}

/// Said while the submission can still be refused.
bool can_be_passed_on() {
  return ProgramOptions::find() ||
         refuse(
             "this program does not let a plugin set a job's comment; write "
             "--comment='flex(run=4h,wait=30m,ontimeout=hold)' instead of the --flex options");
}

/// Slurm's callback: anything but success refuses the submission.
int on_option(int option, const char* value, int remote) {
  if (remote != 0) return SLURM_SUCCESS;
  try {
    const bool is_taken = take(static_cast<Option>(option), value == nullptr ? "" : value);
    return is_taken && can_be_passed_on() ? SLURM_SUCCESS : SLURM_ERROR;
  } catch (...) {
    slurm_error("flex-start: an option could not be read");
    return SLURM_ERROR;
  }
}

bool register_option(spank_t spank, Option option, std::string argument, std::string usage) {
  std::string name = name_of(option);
  // Slurm copies the texts.
  spank_option entry{.name = name.data(),
                     .arginfo = argument.data(),
                     .usage = usage.data(),
                     .has_arg = 1,
                     .val = static_cast<int>(option),
                     .cb = &on_option};
  return spank_option_register(spank, &entry) == ESPANK_SUCCESS;
}

/// Slurm would hand them to all that the job starts, as if its author had typed them there again.
void keep_from_heirs(spank_t spank) {
  for (const OptionNames& names : kNames) {
    ::unsetenv(names.variable);
    spank_job_control_unsetenv(spank, names.variable);
  }
}

/// The job that srun starts a step of; empty: this makes a new job.
std::string running_job(const ProgramOptions& program) {
  std::string job = program.get("jobid");
  const bool is_number = job.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? job : "";
}

/// A word that was typed into the comment is not refused: it may be older than the plugin.
void warn_of_typed(std::string_view comment) {
  for (const std::string& problem : parse_wish(comment).problems)
    slurm_info("flex-start: comment: %s; ignored", problem.c_str());
}

/// slurmctld refuses the job, in words that nobody understands.
void warn_of_length(std::string_view comment, std::string_view with_token) {
  constexpr std::size_t kLongest = 1024;
  if (with_token.size() <= kLongest || comment.size() > kLongest) return;
  slurm_error("flex-start: --comment is too long: with the --flex options it may have %zu bytes",
              kLongest - (with_token.size() - comment.size()));
}

}  // namespace

bool register_options(spank_t spank, const Arguments& arguments) {
  state() = {.arguments = arguments};
  return register_option(spank,
                         Option::Run,
                         "TIME",
                         fmt::format("ask for Flex Start VMs that live this long, instead of the "
                                     "time limit and a margin (10m to {})",
                                     format_duration(arguments.max_run))) &&
         register_option(spank,
                         Option::Wait,
                         "TIME",
                         fmt::format("wait this long for Flex Start VMs at most (up to {})",
                                     format_duration(arguments.max_wait))) &&
         register_option(spank,
                         Option::OnTimeout,
                         "requeue|hold|cancel",
                         "what becomes of the job if they are not there by then");
}

bool pass_wish_on(spank_t spank) {
  keep_from_heirs(spank);
  const auto program = ProgramOptions::find();
  const JobWish& wish = state().wish;
  if (!program) return wish.is_empty();
  if (const std::string job = running_job(*program); !job.empty()) {
    if (!wish.is_empty())
      slurm_info("flex-start: the --flex options are for new jobs, not for a step of job %s",
                 job.c_str());
    return true;
  }
  // Of the job from inside which this one is submitted; the nodes may have no plugin.
  for (const char* name : kVariables) ::unsetenv(name);
  const std::string comment = program->get("comment");
  warn_of_typed(comment);
  if (!wish.is_empty()) warn_of_length(comment, with_wish(comment, wish));
  if (wish.is_empty() || program->set("comment", with_wish(comment, wish))) return true;
  return refuse("the job's comment could not be set; write --comment='flex(run=4h)' instead");
}

void clear_option_variables(spank_t spank) {
  for (const OptionNames& names : kNames)
    spank_unsetenv(spank, fmt::format("SLURM_SPANK_{}", names.variable).c_str());
}

}  // namespace flex::plugin
