// SPDX-License-Identifier: GPL-2.0-or-later
// The one way to take nodes down. It heeds two things that slurmctld does not:
// - A power-down of a node that slurmctld is about to wake leaves the POWER_UP flag. slurmctld then
// wakes the node
//   when it is off, for nobody. Such a node waits until slurmctld has carried out the POWER_UP.
// - A power-down takes an admin's drain away. The same call that powers the node down writes the
//   drain into the node's extra, if the sweeper has not done so before. There it outlives us and
//   slurmctld. The sweeper puts it back.
#pragma once

#include "lib/config/config.h"
#include "lib/slurm/scheduler.h"

#include <chrono>
#include <string>
#include <vector>

namespace flex {

struct TakeDown {
  NodeRequest request = NodeRequest::PowerDownForce;  ///< or PowerDown, PowerDownAsap, Down
  std::vector<NodeName> nodes{};
  std::string reason{};    ///< what sinfo -R shows; may be empty. An admin's reason stays.
  bool only_free = false;  ///< not those that a job has by now
};

/// Whether this request takes nodes down.
[[nodiscard]] bool takes_down(NodeRequest request);

/// Decided from slurmctld's nodes of this moment (pure).
struct TakeDownPlan {
  /// One call to slurmctld.
  struct Call {
    std::vector<NodeName> nodes{};
    std::string reason{};
    std::string extra{};  ///< empty: it stays as it is
  };

  std::vector<Call> calls{};
  std::vector<NodeName> waking{};  ///< their POWER_UP flag is set: not now
};

[[nodiscard]] TakeDownPlan plan_take_down(const Config& config,
                                          const std::vector<Node>& now,
                                          const TakeDown& wish);

struct TakenDown {
  std::vector<NodeName> done{};
  std::vector<NodeName> waking{};  ///< not done: their POWER_UP flag is set
  Result<Done> result = Done{};    ///< the first error; what was not done then is in neither list
};

/// Looks at the nodes once more and takes them down.
[[nodiscard]] TakenDown take_down(Scheduler& scheduler, const Config& config, const TakeDown& wish);

/// The same for a program that does not come back. Nodes whose POWER_UP flag is set are tried again
/// for this long. One that another job has got in the meantime is left alone.
[[nodiscard]] TakenDown take_down_patiently(Scheduler& scheduler,
                                            const Config& config,
                                            const TakeDown& wish,
                                            std::chrono::milliseconds patience);

/// So long such a program waits. slurmctld looks at its flags each second, or, where
/// power_save_min_interval says so, later; then the sweeper takes the node down.
inline constexpr std::chrono::seconds kWakingPatience{8};

/// DRAIN for these nodes, for one reason. The same call writes an admin's reason, and that we have
/// given up on a node, into the nodes' extra.
[[nodiscard]] Result<Done> drain_nodes(Scheduler& scheduler,
                                       const std::vector<NodeName>& nodes,
                                       const std::string& reason);

/// Takes the drain from these nodes. State IDLE for those that are off: UNDRAIN would make
/// slurmctld wait for an answer of theirs, and after a restart give them to no job (is_unusable).
[[nodiscard]] Result<Done> undrain_nodes(Scheduler& scheduler, const std::vector<NodeName>& nodes);

}  // namespace flex
