// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/job_signal.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("to_signal_target: one task, not its array", "[slurm]") {
  slurm_job_info_t job{};
  job.array_task_id = NO_VAL;
  CHECK(slurm::to_signal_target(12, job) == "12");
  job.het_job_id = 12;
  job.het_job_offset = 1;
  CHECK(slurm::to_signal_target(13, job) == "12+1");

  slurm_job_info_t task{};
  task.array_job_id = 12;  // the number of one of its tasks as well
  task.array_task_id = 3;
  CHECK(slurm::to_signal_target(12, task) == "12_3");
}
