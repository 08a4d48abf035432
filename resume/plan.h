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

/// One all-or-nothing request, and what must happen to its names first.
struct PlannedRequest {
  RequestSpec spec{};
  JobId job = 0;
  RequestKey key{};  ///< what spec.name is made from, for the next attempt's name
  std::vector<Instance>
      dead{};  ///< entries without a VM: to be deleted before their names are asked for
  /// Names that must be free before they are asked for, by the group that still holds them (another
  /// job's, it may be).
  std::map<MigName, std::vector<NodeName>> awaited{};
};

/// What to do in one group: create it where it is missing, then ask.
struct GroupPlan {
  GroupSpec spec{};
  std::string nodeset{};
  bool exists = false;
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

/// Raises the key's attempt to the first whose name no request in `taken` has. Finished requests
/// stay listed for a while: to ask again under their name would be answered "already exists" and
/// never be served.
void next_free_attempt(RequestKey& key, const std::vector<ResizeRequest>& taken);

[[nodiscard]] ResumePlan plan_resume(const Config& config,
                                     const std::string& cluster,
                                     const Demand& demand,
                                     const FleetView& fleet,
                                     std::uint32_t first_attempt = 1);

}  // namespace flex
