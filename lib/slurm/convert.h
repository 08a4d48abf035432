// SPDX-License-Identifier: GPL-2.0-or-later
// libslurm's records as the structs of domain.h (pure).
#pragma once

#include "lib/slurm/compat.h"
#include "lib/slurm/scheduler.h"

#include <slurm/slurm.h>

#include <string>
#include <string_view>
#include <vector>

namespace flex::slurm {

/// Null is empty.
[[nodiscard]] std::string to_text(const char* text);
/// A list that slurmctld wrote, which therefore needs no check; null is empty.
[[nodiscard]] std::vector<NodeName> to_nodes(const char* hostlist);
/// INFINITE and NO_VAL are empty.
[[nodiscard]] std::optional<Seconds> to_limit(std::uint32_t minutes);

[[nodiscard]] Node to_node(const node_info_t& node);
[[nodiscard]] Job to_job(const slurm_job_info_t& job);
/// `knows_infinite`: slurmctld takes INFINITE for what it says.
[[nodiscard]] Partition to_partition(const partition_info_t& partition,
                                     bool knows_infinite = kKnowsInfinite);
[[nodiscard]] Reservation to_reservation(const reserve_info_t& reservation);
[[nodiscard]] SlurmSettings to_settings(const slurm_conf_t& conf);
/// Whether a slurmctld of this version ("25.05.1") takes a ResumeTimeout of INFINITE for what it
/// says.
[[nodiscard]] bool knows_infinite(std::string_view version);

}  // namespace flex::slurm
