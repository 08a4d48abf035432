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

/// slurmctld (22.05 to 26.05) answers so for a task of an array whenever two or more others still
/// wait, although the one that runs has got its signal; else it means that the job does not run
/// (pure).
[[nodiscard]] bool may_have_arrived(const Error& error, bool is_task);

/// As in scheduler.h.
[[nodiscard]] Result<Done> signal_job(JobId job, int signal);
[[nodiscard]] Result<Done> cancel_job(JobId job);

}  // namespace flex::slurm
