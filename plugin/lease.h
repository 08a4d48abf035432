// SPDX-License-Identifier: GPL-2.0-or-later
// When the VMs of a job end, for the job's tasks.
#pragma once

#include "lib/core/node_lease.h"
#include "plugin/arguments.h"
#include "plugin/spank_api.h"

#include <optional>

namespace flex::plugin {

/// Of the job's VM that ends first; nothing if none of them ends, if it cannot be known within two
/// seconds, and for the extern step, which has no tasks. With slurmd's privileges.
[[nodiscard]] std::optional<NodeLease> find_lease(spank_t spank, const Arguments& arguments);

/// The variables of the tasks; where there is no lease they are taken away, for a job that was
/// submitted from another has that one's.
void tell_tasks(spank_t spank, const std::optional<NodeLease>& lease);

/// The job is over on this node.
void forget_job(spank_t spank, const Arguments& arguments);

}  // namespace flex::plugin
