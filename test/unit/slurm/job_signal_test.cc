// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/job_signal.h"

#include "lib/slurm/errors.h"
#include "test/support/catch.h"

#include <slurm/slurm_errno.h>

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

TEST_CASE("may_have_arrived: a task's signal, while others of its array wait", "[slurm]") {
  const Error no_update = slurm::to_error(ESLURM_TRANSITION_STATE_NO_UPDATE, "sending");
  CHECK(slurm::may_have_arrived(no_update, true));
  // Without an array it says that the job does not run.
  CHECK_FALSE(slurm::may_have_arrived(no_update, false));
  CHECK_FALSE(slurm::may_have_arrived(slurm::to_error(ESLURM_ALREADY_DONE, "sending"), true));
  CHECK_FALSE(slurm::may_have_arrived(slurm::to_error(ESLURM_INVALID_JOB_ID, "sending"), true));
}
