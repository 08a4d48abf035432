// SPDX-License-Identifier: GPL-2.0-or-later
// Snapshot + config + memory → actions (pure).
#pragma once

#include "lib/config/config.h"
#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace flex {

struct Decision {
  std::vector<Action> actions{};
  std::size_t postponed = 0;  ///< deletions that the budget puts off
  std::size_t waiting = 0;    ///< for room for their request in the region
  std::map<std::string, std::size_t> waiting_nodesets{};  ///< for room in a nodeset, by name
};

/// All rules in their order. `memory` is brought up to the snapshot's time. Nothing is decided
/// about nodesets that were not seen whole, or that share a job with one.
[[nodiscard]] Decision decide(const Config& config, const Snapshot& shot, Memory& memory);

/// While Compute Engine, or some nodesets there, cannot be seen: with its last picture and Slurm's
/// present one, only what keeps the jobs of those nodesets waiting. Nothing is ended, deleted or
/// asked for.
[[nodiscard]] Decision decide_blindly(const Config& config, const Snapshot& shot, Memory& memory);

}  // namespace flex
