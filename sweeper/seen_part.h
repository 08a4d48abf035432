// SPDX-License-Identifier: GPL-2.0-or-later
// A look that shows some nodesets only: nothing is decided about the others (pure).
#pragma once

#include "lib/config/config.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <set>
#include <string>

namespace flex {

/// The nodesets that were not seen whole, and those that share a job with one of them.
[[nodiscard]] std::set<std::string> hidden_nodesets(const Config& config, const Snapshot& shot);

/// The snapshot without the groups, nodes and jobs of these nodesets, and without what others may
/// use that cannot be seen.
[[nodiscard]] Snapshot without(const Config& config,
                               const Snapshot& shot,
                               const std::set<std::string>& hidden);

/// Puts back what was remembered of these nodesets before a round that did not see them.
void restore(Memory& memory,
             const Memory& before,
             const Config& config,
             const std::string& cluster,
             const std::set<std::string>& hidden);

}  // namespace flex
