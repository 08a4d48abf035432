// SPDX-License-Identifier: GPL-2.0-or-later
// One look at Compute Engine and Slurm. Nothing is decided about what it does not show whole.
#pragma once

#include "lib/config/config.h"
#include "lib/gce/cloud.h"
#include "lib/slurm/scheduler.h"
#include "sweeper/snapshot.h"

#include <functional>
#include <optional>
#include <string>

namespace flex {

/// Is told what is being read: "groups of Compute Engine: 12 of 40". May be empty.
using Progress = std::function<void(const std::string& doing)>;

/// Brings `shot` up to date. Of Slurm only what has changed since the last look is asked for; of
/// Compute Engine the groups with our names, and the lists of those that may have changed. Compute
/// Engine first: what Slurm says must not be older than what was seen there. Where some nodesets
/// could not be seen whole shot.unseen says which; an error: nothing can be decided at all.
[[nodiscard]] Result<Done> observe(Cloud& cloud,
                                   Scheduler& scheduler,
                                   const Config& config,
                                   TimePoint now,
                                   Snapshot& shot,
                                   const Progress& progress = {});

/// The same, or an error if any nodeset could not be seen whole.
[[nodiscard]] Result<Done> observe_whole(
    Cloud& cloud, Scheduler& scheduler, const Config& config, TimePoint now, Snapshot& shot);

/// What the accounting allows, of the users whose jobs wait for their nodes; of all, if one has no
/// name. Nothing where it is not enforced or no job waits. That it is not known is no error.
void observe_accounting(Scheduler& scheduler, Snapshot& shot);

/// The shortest ResumeTimeout of the nodes that are being brought up; none: there are no such
/// nodes, or it never ends.
[[nodiscard]] std::optional<Seconds> shortest_resume_timeout(const Config& config,
                                                             const Snapshot& shot);

/// Slurm's part alone.
[[nodiscard]] Result<Done> observe_slurm(Scheduler& scheduler,
                                         Snapshot& shot,
                                         const Progress& progress = {});

}  // namespace flex
