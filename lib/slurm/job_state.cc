// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/job_state.h"

#include <slurm/slurm.h>

#include <array>

namespace flex {

std::string_view job_state_text(const Job& job) {
  // In the order of enum job_states.
  constexpr std::array<std::string_view, 12> kStates{"PENDING",
                                                     "RUNNING",
                                                     "SUSPENDED",
                                                     "COMPLETED",
                                                     "CANCELLED",
                                                     "FAILED",
                                                     "TIMEOUT",
                                                     "NODE_FAIL",
                                                     "PREEMPTED",
                                                     "BOOT_FAIL",
                                                     "DEADLINE",
                                                     "OUT_OF_MEMORY"};
  static_assert(JOB_COMPLETE == 3 && JOB_OOM == 11);
  const std::uint32_t base = job.state & JOB_STATE_BASE;
  return base < kStates.size() ? kStates[base] : "UNKNOWN";
}

}  // namespace flex
