// SPDX-License-Identifier: GPL-2.0-or-later
// How long a job waits for its VMs, and what then becomes of it (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/core/job_note.h"

#include <optional>

namespace flex {

struct Patience {
  Seconds limit{};            ///< 0: for ever
  bool is_own_limit = false;  ///< the job's own, not the nodeset's
  OnTimeout then = OnTimeout::Requeue;

  [[nodiscard]] bool is_over(Seconds waited) const { return limit > Seconds{0} && waited >= limit; }
};

/// The job's own wish, as far as the nodeset allows: a limit of the nodeset can only be made
/// shorter.
[[nodiscard]] Patience patience_of(const NodesetConfig& nodeset, const Job& job);

/// What becomes of the job when its patience is over.
[[nodiscard]] TimeoutOutcome fate_of(const Job& job, OnTimeout then);

/// Since when the job waits for the request. One that was renewed, or that follows another, began
/// to wait with its job; a job that came to another's request has not waited longer than it has its
/// nodes.
[[nodiscard]] TimePoint began_to_wait(const ResizeRequest& request, const Job& job);

}  // namespace flex
