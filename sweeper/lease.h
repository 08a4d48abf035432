// SPDX-License-Identifier: GPL-2.0-or-later
// When a job's VMs end, and what that means for it (pure).
#pragma once

#include "lib/core/job_note.h"
#include "sweeper/rules.h"

#include <optional>
#include <unordered_map>

namespace flex {

/// The end of a job's VMs: of the one that ends first, in all parts of a heterogeneous job.
struct JobLease {
  TimePoint ends{};
  std::size_t nodeset = 0;  ///< of that VM
};

/// Nothing if no VM of it is known to end.
[[nodiscard]] std::optional<JobLease> lease_of(const Picture& picture, const Job& job);

/// It has started and would still run when its VMs end; else nothing.
[[nodiscard]] std::optional<Overrun> overrun_of(const Job& job, const JobLease& lease);

/// It has its VMs and has yet to begin; its time limit would be over after their end even if it
/// began now.
[[nodiscard]] std::optional<Overrun> overrun_to_come(const Job& job,
                                                     const JobLease& lease,
                                                     TimePoint now);

/// The time for its warning has come: from now on its comment is lease_warning's. Not while it is
/// suspended: it could do nothing.
[[nodiscard]] bool is_warning_due(const Round& round, const Job& job, const JobLease& lease);

/// How long before its VM's end a node gets no more jobs: at least two rounds, so that none is
/// started in between; a minute where rounds are short.
[[nodiscard]] Seconds drain_lead(const Config& config);

/// How long before its VM's end the fence around a node begins: so long slurmctld takes to end a
/// job whose time is over. Its tick, OverTimeLimit, KillWait, and an allowance for the epilog.
[[nodiscard]] Seconds fence_lead(const SlurmSettings& settings, Seconds over_time_limit);

/// OverTimeLimit of each node: the longest of its partitions.
class OverTimeLimits {
 public:
  explicit OverTimeLimits(const Snapshot& shot);

  [[nodiscard]] Seconds of(const NodeName& node) const;

 private:
  Seconds global_{};
  std::unordered_map<NodeName, Seconds> own_{};  ///< only where partitions say something else
};

/// slurmctld looks once in this time for jobs whose time is over.
inline constexpr Seconds kLimitTick{30};

/// One that lease_end made: by its name and its flags.
[[nodiscard]] bool is_lease_reservation(const Reservation& reservation);

}  // namespace flex
