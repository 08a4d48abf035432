// SPDX-License-Identifier: GPL-2.0-or-later
// libslurm's records as the structs of domain.h (pure).
#pragma once

#include "lib/core/domain.h"

#include <slurm/slurm.h>

#include <string>
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
[[nodiscard]] Partition to_partition(const partition_info_t& partition);

}  // namespace flex::slurm
