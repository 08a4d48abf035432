// SPDX-License-Identifier: GPL-2.0-or-later
// Carries a SuspendPlan out, all calls side by side.
#pragma once

#include "lib/gce/cloud.h"
#include "suspend/plan.h"

#include <vector>

namespace flex {

struct SuspendFailure {
  MigName group{};
  std::vector<NodeName> nodes{};
  Error error{};
};

struct SuspendOutcome {
  std::vector<PlannedDeletion> deleted{};
  std::vector<PlannedCancel> cancelled{};
  /// The request or VM was in the middle of something (being created, just served): worth another
  /// look.
  std::vector<NodeName> again{};
  std::vector<SuspendFailure> failed{};
};

/// Runs the cloud; does not wait for the VMs to be gone. "Not found" is success.
[[nodiscard]] SuspendOutcome apply_suspend(Cloud& cloud, const SuspendPlan& plan);

}  // namespace flex
