// SPDX-License-Identifier: GPL-2.0-or-later
// A signal to every process of a job, and its end.
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"

#include <slurm/slurm.h>

#include <string>

namespace flex::slurm {

/// How slurmctld is told of job `id` and no other: by the number alone it takes the task that has
/// the array's own number for the whole array.
[[nodiscard]] std::string to_signal_target(JobId id, const slurm_job_info_t& job);

/// As in scheduler.h.
[[nodiscard]] Result<Done> signal_job(JobId job, int signal);
[[nodiscard]] Result<Done> cancel_job(JobId job);

}  // namespace flex::slurm
