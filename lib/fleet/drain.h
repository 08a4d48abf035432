// SPDX-License-Identifier: GPL-2.0-or-later
// Drains: which of them a power-down must not cost, and which a new VM mends (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"

#include <optional>
#include <string>
#include <string_view>

namespace flex {

/// The reason of a node that unhealthy_node has given up on begins with this.
inline constexpr std::string_view kGaveUp = "flex: gave up after ";

/// Drained for one of the nodeset's repair_reasons: another VM mends that.
[[nodiscard]] bool is_to_repair(const NodesetConfig& nodeset, const Node& node);

/// slurmctld has set this reason by itself, and takes it away itself: POWER_DOWN_ASAP, a node that
/// does not respond or was not up in time, a reboot.
[[nodiscard]] bool is_slurmctlds_reason(std::string_view reason);

/// An admin has taken the node out of service (DRAIN, or DOWN), or unhealthy_node has given up on
/// it. That outlives every power-down. Not so for what the next VM mends, for what a stopped
/// nodeset drains (its rule drains again), for reasons of slurmctld's own, and where slurmctld has
/// refused the VM's registration.
[[nodiscard]] bool is_set_aside(const NodesetConfig& nodeset, const Node& node);

/// What is to be done about a drain that is remembered, or that is to be.
enum class DrainCare {
  Nothing,
  Remember,  ///< the node is set aside, and what is remembered does not say so, or not why
  Restore,   ///< a power-down has taken the drain, or a power-up its reason: drain it again
  Wait,      ///< the same, but DRAIN would send the job that waits for the node back to the queue
  Forget,    ///< an admin has undrained the node
};

/// What the round before, moments ago, has seen of a node.
enum class LastLook {
  Nothing,       ///< of this kind; or there was none
  DrainedAndUp,  ///< also: drained and powering down
  Lost,          ///< DrainCare::Wait
};

/// `remembered`: the reason, as the node's extra or the memory has it.
///
/// Who has taken a drain away shows in slurmctld's record: a power-down keeps the node's reason, an
/// admin's UNDRAIN, RESUME or IDLE clears it. So does whatever wakes the node (before 23.11) or
/// allocates it: of a node that comes up without a reason only the last look tells a lost drain
/// from one that an admin took away.
[[nodiscard]] DrainCare care_for_drain(const NodesetConfig& nodeset,
                                       const Node& node,
                                       const std::optional<std::string>& remembered,
                                       LastLook last);

}  // namespace flex
