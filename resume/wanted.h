// SPDX-License-Identifier: GPL-2.0-or-later
// Whether slurmctld still wants what flex-resume or the sweeper has planned, after something took
// its time.
#pragma once

#include "lib/core/domain.h"
#include "lib/slurm/scheduler.h"
#include "resume/plan.h"

#include <chrono>
#include <optional>
#include <span>
#include <vector>

namespace flex {

/// Its job is in the same run and holds all of its nodes (pure). For nodes without a job: none of
/// them is up or powering down.
[[nodiscard]] bool is_still_wanted(const PlannedRequest& request,
                                   std::span<const Job> jobs,
                                   std::span<const Node> nodes);

/// Asks slurmctld, for all requests of a plan at once and at most once a second: there may be
/// hundreds of them. What slurmctld does not answer is wanted.
class WantedNow {
 public:
  WantedNow(Scheduler& scheduler, const ResumePlan& plan);

  [[nodiscard]] bool operator()(const PlannedRequest& request);

 private:
  void look();

  Scheduler& scheduler_;
  std::vector<JobId> ids_{};
  bool has_jobless_ = false;
  std::optional<std::chrono::steady_clock::time_point> looked_{};
  bool is_known_ = false;
  std::vector<Job> jobs_{};
  std::vector<Node> nodes_{};
};

}  // namespace flex
