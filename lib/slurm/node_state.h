// SPDX-License-Identifier: GPL-2.0-or-later
// State bits of nodes as named predicates (pure). The bit numbers are the same from 22.05 to 26.05.
#pragma once

#include "lib/core/domain.h"

#include <string>

namespace flex {

[[nodiscard]] bool is_powering_up(const Node& node);
[[nodiscard]] bool is_powered_down(const Node& node);
[[nodiscard]] bool is_powering_down(const Node& node);
[[nodiscard]] bool is_idle(const Node& node);
/// ALLOCATED or MIXED.
[[nodiscard]] bool is_allocated(const Node& node);
[[nodiscard]] bool is_down(const Node& node);
[[nodiscard]] bool is_draining(const Node& node);
[[nodiscard]] bool is_not_responding(const Node& node);
[[nodiscard]] bool is_cloud(const Node& node);
[[nodiscard]] bool is_completing(const Node& node);
/// slurmctld has refused the registration: slurm.conf says more of the node than slurmd found.
[[nodiscard]] bool is_registration_refused(const Node& node);
/// A reboot was asked for, or is under way: slurmctld drains the node for it, and undrains it.
[[nodiscard]] bool is_rebooting(const Node& node);
/// Somebody asked for it and slurmctld has not begun yet.
[[nodiscard]] bool is_power_up_requested(const Node& node);
/// slurmctld wakes it at its next look at the power flags. One that is up may have the POWER_UP
/// flag, too, after a restart of slurmctld: there it means nothing.
[[nodiscard]] bool is_about_to_wake(const Node& node);
/// Somebody asked for it and slurmctld has not begun yet: it may wait for the node's jobs.
[[nodiscard]] bool is_power_down_requested(const Node& node);
/// Slurm believes that there is a machine: neither powered down nor on its way up or down.
[[nodiscard]] bool is_up(const Node& node);
/// Idle and powered down, but slurmctld waits for an answer of it (UNDRAIN and RESUME do that):
/// after slurmctld's next restart no job gets the node. A power-down makes it whole.
[[nodiscard]] bool is_unusable(const Node& node);
/// "IDLE+CLOUD+POWERING_UP", for logs.
[[nodiscard]] std::string state_text(const Node& node);

}  // namespace flex
