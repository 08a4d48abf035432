// SPDX-License-Identifier: GPL-2.0-or-later
// The sweeper's look at Compute Engine: the list of groups, and of each group what may have
// changed.
#pragma once

#include "lib/config/config.h"
#include "lib/gce/cloud.h"
#include "sweeper/observe.h"
#include "sweeper/snapshot.h"

#include <set>
#include <string>

namespace flex {

/// Brings the cloud's part of `shot` up to date. An error: nothing is known. What could be read of
/// some nodesets only is said in shot.unseen.
[[nodiscard]] Result<Done> look_at_cloud(Cloud& cloud,
                                         const Config& config,
                                         Snapshot& shot,
                                         const Progress& progress);

/// Reads the lists of these groups, which were not read in this round.
void read_groups(Cloud& cloud, Snapshot& shot, const std::set<MigName>& names);

/// What no nodeset needs and an earlier config may have left.
struct Remains {
  std::set<std::string> loose{};  ///< nodesets with VMs in no group
  bool has_policies = false;
  bool is_whole = true;  ///< all could be seen, or will never be
};

[[nodiscard]] Remains look_for_remains(Cloud& cloud, const std::string& cluster);

}  // namespace flex
