// SPDX-License-Identifier: GPL-2.0-or-later
// Which nodes count for a nodeset's max_nodes, as a look at Compute Engine shows it (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/fleet/queue.h"
#include "lib/fleet/view.h"
#include "lib/provision/admission.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>

namespace flex {

/// Nodes that have a VM or an entry for one, or that an active request names. What is in a group
/// that was not looked into has no names here, but it counts.
[[nodiscard]] std::set<NodeName> nodes_in_use(const NodesetView& view,
                                              const std::string& cluster,
                                              const std::string& nodeset);

/// What else is known of who uses the nodesets, or wants to.
struct RoomInput {
  const Config& config;
  const std::string& cluster;
  const FleetView& fleet;
  std::set<NodeName> asked{};  ///< that the look may not show (asked_nodes.h)
  QueueFile queue{};           ///< who waits, where that is not among the asks
};

/// The room in the nodesets of the fleet that have max_nodes, by index.
[[nodiscard]] std::map<std::size_t, NodesetRoom> find_room(const RoomInput& input);

/// Requests that are seen waiting.
[[nodiscard]] std::size_t count_active_requests(const FleetView& fleet);

}  // namespace flex
