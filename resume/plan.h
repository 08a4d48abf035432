// SPDX-License-Identifier: GPL-2.0-or-later
// Demand + what Compute Engine has + config → what to ask for (pure). The sweeper plans with the
// same function, so a node looks the same whoever asked for it. How much of it may be asked for now
// is decided by the admission (lib/provision/admission.h).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/view.h"
#include "resume/demand.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace flex {

/// One all-or-nothing request, and what must happen to its names first.
struct PlannedRequest {
  RequestSpec spec{};  ///< without a name where VMs are asked for directly, not by a request
  JobId job = 0;
  RequestKey key{};  ///< what spec.name is made from, for the next attempt's name
  RequestWay way{};
  std::string nodeset{};
  Mode mode = Mode::Queued;
  std::vector<std::string> zones{};
  std::string how{};  ///< how the run duration was computed
  BulkSpec bulk{};    ///< of bulkInsert
  /// Entries without a VM, by group: to be deleted before their names are asked for.
  std::map<MigName, std::vector<Instance>> dead{};
  /// Names that must be free before they are asked for, by the group that still holds them (another
  /// job's, it may be).
  std::map<MigName, std::vector<NodeName>> awaited{};
};

/// What to do in one group: create it where it is missing, then ask.
struct GroupPlan {
  GroupSpec spec{};  ///< of the kind Loose: bulkInsert, there is no group
  std::string nodeset{};
  bool exists = false;
  std::optional<PolicySpec> policy{};  ///< to be made before the group
  std::vector<PlannedRequest> requests{};
};

/// Nodes that cannot be asked for.
struct Refusal {
  JobId job = 0;
  std::vector<NodeName> nodes{};
  Error error{};
};

/// A job whose VMs may end before its time limit, or at another time than it asked for.
struct CappedJob {
  JobId job = 0;
  std::string note{};  ///< for its author
};

/// A request that nobody needs as it is: given up before its nodes are asked for.
struct PlannedCancel {
  MigName group{};
  RequestName request{};
  JobId job = 0;
  std::vector<NodeName> nodes{};
  std::string why{};
};

struct ResumePlan {
  std::string cluster{};
  std::vector<PlannedCancel> cancels{};
  std::vector<GroupPlan> groups{};
  std::vector<Refusal> refusals{};
  std::vector<CappedJob> capped{};
  std::vector<NodeName> left_alone{};  ///< have a VM or an active request already
};

/// Raises the key's attempt to the first whose name no request in `taken` has. Finished requests
/// stay listed for a while: to ask again under their name would be answered "already exists" and
/// never be served.
void next_free_attempt(RequestKey& key, const std::vector<ResizeRequest>& taken);

/// Which try of which way it is.
struct PlanOptions {
  std::uint32_t attempt = 1;
  std::size_t step = 0;  ///< of on_stockout
  std::uint32_t renewed = 0;
  std::uint32_t failures = 0;  ///< requests for the same that failed before this
  /// Ask although active requests name the nodes: the new one is to take their place, in another
  /// group.
  bool is_second = false;
  bool only_missing = false;  ///< of a race: only where no active request names the nodes
  Seconds shorter{0};         ///< of the way: what the one before was made for, if too short

  friend auto operator<=>(const PlanOptions&, const PlanOptions&) = default;
};

/// Those of the nodes that have no VM, as far as these groups show.
[[nodiscard]] std::vector<NodeName> nodes_without_vm(const Config& config,
                                                     const std::string& cluster,
                                                     const FleetView& fleet,
                                                     const std::vector<NodeName>& nodes);

/// The jobs that have active requests for these nodes.
[[nodiscard]] std::vector<JobId> jobs_asked_for(const FleetView& fleet,
                                                const std::vector<NodeName>& nodes);

[[nodiscard]] ResumePlan plan_resume(const Config& config,
                                     const std::string& cluster,
                                     const Demand& demand,
                                     const FleetView& fleet,
                                     const PlanOptions& options = {});

}  // namespace flex
