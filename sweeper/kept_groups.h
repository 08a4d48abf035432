// SPDX-License-Identifier: GPL-2.0-or-later
// Which actions go by a list that was not read in this round (pure).
#pragma once

#include "lib/config/config.h"
#include "sweeper/action.h"
#include "sweeper/snapshot.h"

#include <set>
#include <vector>

namespace flex {

/// Groups whose lists are those of an earlier round and that actions write to, or whose VMs or
/// requests the actions' nodes have. They are to be read before anything is done. What is only
/// told counts for nothing.
[[nodiscard]] std::set<MigName> kept_groups_of(const Config& config,
                                               const Snapshot& shot,
                                               const std::vector<Action>& actions);

/// The groups that these actions write to, by name.
[[nodiscard]] std::set<MigName> written_groups(const std::vector<Action>& actions);

}  // namespace flex
