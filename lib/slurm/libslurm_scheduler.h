// SPDX-License-Identifier: GPL-2.0-or-later
// The real Scheduler, on libslurm.
#pragma once

#include "lib/slurm/scheduler.h"

#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace flex {

/// SlurmUser's id as slurm.conf has it; known only after open_libslurm.
[[nodiscard]] std::optional<uid_t> slurm_user_id();

/// StateSaveLocation as slurm.conf has it, for when slurmctld does not answer; empty: not known.
/// Known only after open_libslurm.
[[nodiscard]] std::string slurm_conf_state_dir();

/// slurm_init with $SLURM_CONF or `conf_file` where that is not empty; slurm_fini at its end. One
/// per process, in main. libslurm ends the process itself when slurm.conf cannot be read, so that
/// is checked first and is Invalid here.
[[nodiscard]] Result<std::unique_ptr<Scheduler>> open_libslurm(const std::string& conf_file = {});

}  // namespace flex
