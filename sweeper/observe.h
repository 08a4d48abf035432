// SPDX-License-Identifier: GPL-2.0-or-later
// One look at Compute Engine and Slurm. Complete, or an error: nothing is decided on part of it.
#pragma once

#include "lib/config/config.h"
#include "lib/gce/cloud.h"
#include "lib/slurm/scheduler.h"
#include "sweeper/snapshot.h"

#include <functional>
#include <string>

namespace flex {

/// Is told what is being read: "groups of Compute Engine: 12 of 40". May be empty.
using Progress = std::function<void(const std::string& doing)>;

/// Brings `shot` up to date. Of Slurm only what has changed since the last look is asked for; of
/// Compute Engine the groups with our names, and two lists for each group that is ours. Compute
/// Engine first: what Slurm says must not be older than what was seen there.
[[nodiscard]] Result<Done> observe(Cloud& cloud,
                                   Scheduler& scheduler,
                                   const Config& config,
                                   TimePoint now,
                                   Snapshot& shot,
                                   const Progress& progress = {});

/// Slurm's part alone.
[[nodiscard]] Result<Done> observe_slurm(Scheduler& scheduler,
                                         Snapshot& shot,
                                         const Progress& progress = {});

}  // namespace flex
