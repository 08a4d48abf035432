// SPDX-License-Identifier: GPL-2.0-or-later
// What slurmctld runs with, as far as it can be compared with slurm.conf.
#pragma once

#include "lib/core/result.h"

#include <map>
#include <string>

namespace flex {

struct RunningConf {
  std::string version{};  ///< "22.05.8", of slurmctld
  std::string state_save_location{};
  /// By the key of slurm.conf ("ResumeTimeout"), as it is written there; a number that stands for
  /// INFINITE is "INFINITE". A key that this release does not know is missing.
  std::map<std::string, std::string> values{};
};

/// Asks slurmctld; libslurm must be open (open_libslurm). With a patience of a few seconds.
[[nodiscard]] Result<RunningConf> load_running_conf();

/// Of the libslurm that we were built with, whose ABI no other release has: "22.05.8".
[[nodiscard]] std::string slurm_library_version();

}  // namespace flex
