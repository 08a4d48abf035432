// SPDX-License-Identifier: GPL-2.0-or-later
// Demand + what Compute Engine has + config → what to ask for (pure). The sweeper plans with the
// same function, so a node looks the same whoever asked for it.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/fleet/view.h"
#include "resume/demand.h"

#include <map>
#include <string>
#include <vector>

namespace flex {

/// One all-or-nothing request.
struct PlannedRequest {
  RequestSpec spec{};
  JobId job = 0;
};

/// What to do in one group, in this order: create it, clear names, ask.
struct GroupPlan {
  GroupSpec spec{};
  std::string nodeset{};
  bool exists = false;
  std::vector<Instance>
      dead{};  ///< entries without a VM: to be deleted before their names are asked for
  /// Names that must be free before they are asked for, by the group that still holds them (another
  /// job's, it may be).
  std::map<MigName, std::vector<NodeName>> awaited{};
  std::vector<PlannedRequest> requests{};
};

/// Nodes that cannot be asked for.
struct Refusal {
  JobId job = 0;
  std::vector<NodeName> nodes{};
  Error error{};
};

/// A job whose VMs may end before its time limit.
struct CappedJob {
  JobId job = 0;
  Seconds time_limit{};
  Seconds run{};
};

struct ResumePlan {
  std::vector<GroupPlan> groups{};
  std::vector<Refusal> refusals{};
  std::vector<CappedJob> capped{};
  std::vector<NodeName> left_alone{};  ///< have a VM or an active request already
};

[[nodiscard]] ResumePlan plan_resume(const Config& config,
                                     const std::string& cluster,
                                     const Demand& demand,
                                     const FleetView& fleet);

}  // namespace flex
