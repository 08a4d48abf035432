// SPDX-License-Identifier: GPL-2.0-or-later
// Drains: which of them a power-down must not cost, and which a new VM mends (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"

#include <string_view>

namespace flex {

/// The reason of a node that unhealthy_node has given up on begins with this.
inline constexpr std::string_view kGaveUp = "flex: gave up after ";

/// Drained for one of the nodeset's repair_reasons: another VM mends that.
[[nodiscard]] bool is_to_repair(const NodesetConfig& nodeset, const Node& node);

/// An admin has taken the node out of service, or unhealthy_node has given up on it. Whoever powers
/// it down puts the drain back. Not so for a drain that the next VM mends, for one of a stopped
/// nodeset (its rule drains again), and where slurmctld has refused the VM's registration.
[[nodiscard]] bool is_set_aside(const NodesetConfig& nodeset, const Node& node);

}  // namespace flex
