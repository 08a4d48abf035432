// SPDX-License-Identifier: GPL-2.0-or-later
// Nodes to take away + what Compute Engine has → what to delete and what to cancel (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/fleet/view.h"

#include <set>
#include <span>
#include <string>
#include <vector>

namespace flex {

/// VMs of one group to delete in one call, at most kMaxRequestSize.
struct PlannedDeletion {
  MigName group{};
  std::vector<Instance> instances{};
};

/// A queued request all of whose nodes are leaving.
struct PlannedCancel {
  MigName group{};
  RequestName request{};
  std::vector<NodeName> nodes{};
  JobId job = 0;
};

/// A queued request that other nodes still wait for: it must stay, and its VMs for the leaving
/// nodes are deleted when they come.
struct KeptRequest {
  MigName group{};
  RequestName request{};
  std::vector<NodeName> leaving{};
  std::size_t others = 0;
};

struct UnseenNodes {
  std::vector<NodeName> nodes{};
  Error error{};
};

struct SuspendPlan {
  std::vector<PlannedDeletion> deletions{};
  std::vector<PlannedCancel> cancels{};
  std::vector<KeptRequest> kept{};
  /// Queued, but no active request accounts for it: the two lists were taken at different moments,
  /// so look again.
  std::vector<NodeName> unclear{};
  std::vector<NodeName> gone{};     ///< nothing there (any more), or being deleted: as it should be
  std::vector<NodeName> foreign{};  ///< in no nodeset of ours
  std::vector<UnseenNodes> unseen{};
};

/// Nodesets (by name) of nodes that no group knows of: their VMs may be in none, made by an earlier
/// config's bulkInsert.
[[nodiscard]] std::set<std::string> nodesets_without_trace(const Config& config,
                                                           std::span<const NodeName> nodes,
                                                           const FleetView& fleet);

[[nodiscard]] SuspendPlan plan_suspend(const Config& config,
                                       const std::string& cluster,
                                       std::span<const NodeName> nodes,
                                       const FleetView& fleet);

}  // namespace flex
