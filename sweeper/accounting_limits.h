// SPDX-License-Identifier: GPL-2.0-or-later
// What Slurm's accounting has against a job that already has its nodes, but has not begun (pure).
#pragma once

#include "lib/core/accounting.h"
#include "lib/core/domain.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Why slurmctld would not give the job nodes now.
struct Obstacle {
  std::string key{};  ///< what it is remembered by
  std::string why{};
  /// slurmctld may see it otherwise: it compares names in its own way (sub-accounts), and an admin
  /// may have raised a job's own limits. Only what comes up while the job waits counts.
  bool is_guess = false;
};

/// The clear cases: its association or its QOS is gone, it may not use its QOS any more, a limit
/// that this job alone is above (MaxWall, GrpTRES …), or no jobs at all are allowed (GrpJobs=0,
/// MaxJobs=0). Not that others have used a limit up: the job is counted in what is used. Limits on
/// submitting do not matter any more. All are guesses.
[[nodiscard]] std::vector<Obstacle> accounting_obstacles(const Accounting& accounting,
                                                         const Enforcement& enforced,
                                                         const Job& job,
                                                         const std::string& partition_qos);

/// Null: there is none of this name.
[[nodiscard]] const Qos* find_qos(const Accounting& accounting, std::string_view name);

/// The least time that slurmctld may give it; 0 for a job without a limit.
[[nodiscard]] Seconds least_time(const Job& job);

/// "cpu=2,mem=4G,node=1"; memory in MiB. What is no whole number is left out: Slurm has rounded it.
[[nodiscard]] TresCounts parse_tres(std::string_view text);

}  // namespace flex
