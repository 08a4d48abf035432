// SPDX-License-Identifier: GPL-2.0-or-later
// What sbatch, salloc and srun take from a job's author, and how it travels: in the job's comment.
#pragma once

#include "plugin/arguments.h"
#include "plugin/spank_api.h"

namespace flex::plugin {

/// In slurm_spank_init. `arguments` are those that the values are held to.
[[nodiscard]] bool register_options(spank_t spank, const Arguments& arguments);

/// In slurm_spank_init_post_opt of sbatch, salloc and srun, once for each component of a job.
/// False if the wish cannot be passed on; it is told.
[[nodiscard]] bool pass_wish_on(spank_t spank);

/// On the node: what a job's author said in the environment is not for what the job submits.
void clear_option_variables(spank_t spank);

}  // namespace flex::plugin
