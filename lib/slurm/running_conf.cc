// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/running_conf.h"

#include "lib/slurm/compat.h"
#include "lib/slurm/convert.h"
#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"

#include <fmt/format.h>
#include <slurm/slurm.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>

namespace flex {
namespace {

// A doctor's patience: one that does not answer in this time is not well.
constexpr std::uint16_t kPatience = 5;

using Values = std::map<std::string, std::string>;

template <class Number>
std::string to_number(Number value) {
  const bool is_infinite =
      value == std::numeric_limits<Number>::max() || static_cast<std::uint64_t>(value) == INFINITE;
  return is_infinite ? "INFINITE" : std::to_string(value);
}

/// A release that has taken a field out of the struct does not know the key.
template <class Conf>
void read_programs(const Conf& conf, Values& values) {
  if constexpr (requires { conf.resume_program; })
    values["ResumeProgram"] = slurm::to_text(conf.resume_program);
  if constexpr (requires { conf.suspend_program; })
    values["SuspendProgram"] = slurm::to_text(conf.suspend_program);
  if constexpr (requires { conf.resume_fail_program; })
    values["ResumeFailProgram"] = slurm::to_text(conf.resume_fail_program);
}

template <class Conf>
void read_numbers(const Conf& conf, Values& values) {
  if constexpr (requires { conf.resume_rate; }) values["ResumeRate"] = to_number(conf.resume_rate);
  if constexpr (requires { conf.suspend_rate; })
    values["SuspendRate"] = to_number(conf.suspend_rate);
  if constexpr (requires { conf.resume_timeout; })
    values["ResumeTimeout"] = to_number(conf.resume_timeout);
  if constexpr (requires { conf.suspend_timeout; })
    values["SuspendTimeout"] = to_number(conf.suspend_timeout);
  if constexpr (requires { conf.suspend_time; })
    values["SuspendTime"] = to_number(conf.suspend_time);
  if constexpr (requires { conf.tree_width; }) values["TreeWidth"] = to_number(conf.tree_width);
  if constexpr (requires { conf.ret2service; })
    values["ReturnToService"] = to_number(conf.ret2service);
}

template <class Conf>
void read_words(const Conf& conf, Values& values) {
  if constexpr (requires { conf.slurmctld_params; })
    values["SlurmctldParameters"] = slurm::to_text(conf.slurmctld_params);
  if constexpr (requires { conf.suspend_exc_parts; })
    values["SuspendExcParts"] = slurm::to_text(conf.suspend_exc_parts);
}

}  // namespace

Result<RunningConf> load_running_conf() {
  if (&slurm_conf != nullptr) {
    slurm_conf.msg_timeout = std::min(slurm_conf.msg_timeout, kPatience);
    slurm_conf.slurmctld_timeout = std::min(slurm_conf.slurmctld_timeout, kPatience);
  }
  slurm_conf_t* raw = nullptr;
  errno = 0;
  const int number = slurm::error_number(slurm_load_ctl_conf(0, &raw));
  const slurm::ConfPtr conf(raw);
  if (number != 0) return slurm::to_error(number, "loading Slurm's configuration");
  if (!conf) return Error{ErrorKind::Internal, "loading Slurm's configuration: no answer"};
  RunningConf running{.version = slurm::to_text(conf->version),
                      .state_save_location = slurm::to_text(conf->state_save_location)};
  read_programs(*conf, running.values);
  read_numbers(*conf, running.values);
  read_words(*conf, running.values);
  return running;
}

std::string slurm_library_version() {
  // slurm_api_version() is no help: it is the number in the library's soname, 38 on 22.05.
  return fmt::format(
      "{:02}.{:02}.{}", slurm::kReleaseYear, slurm::kReleaseMonth, slurm::kReleasePatch);
}

}  // namespace flex
