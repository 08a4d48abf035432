// SPDX-License-Identifier: GPL-2.0-or-later
// What flexctl cancel does about a request: decided from one look, carried out as the sweeper
// carries out its own actions (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/job_note.h"
#include "lib/fleet/cancelled.h"
#include "sweeper/action.h"
#include "sweeper/snapshot.h"

#include <optional>
#include <string>
#include <vector>

namespace flex {

struct CancelWish {
  std::string request{};  ///< its name, or GROUP/NAME
  OnTimeout then = OnTimeout::Hold;
  std::string by{};
  TimePoint now{};
};

struct CancelPlan {
  Action cancel{};                       ///< first of all: the rest only if that succeeds
  std::vector<Action> slurm{};           ///< comments, jobs, nodes
  std::vector<std::string> sentences{};  ///< what will be done, for the admin
  /// Where other requests for its nodes go on: what the sweeper is to know, so that it does not
  /// make this one again.
  std::optional<CancelledWay> not_again{};
};

/// NotFound, Precondition (too late, or not yet) or Invalid (several, or not ours), with what to
/// do.
[[nodiscard]] Result<CancelPlan> plan_cancel(const Config& config,
                                             const Snapshot& shot,
                                             const CancelWish& wish);

}  // namespace flex
