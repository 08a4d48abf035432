// SPDX-License-Identifier: GPL-2.0-or-later
// Jobs as people name them.
#include "ctl/job_name.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("job name: a job, a task of an array, a part of a heterogeneous job", "[ctl]") {
  Job job;
  job.id = 12;
  CHECK(parse_job_name("12")->is(job));
  CHECK_FALSE(parse_job_name("13")->is(job));
  Job task;
  task.id = 15;
  task.array_job_id = 12;
  task.array_task = 3;
  CHECK(parse_job_name("12_3")->is(task));
  CHECK(parse_job_name("15")->is(task));
  CHECK_FALSE(parse_job_name("12_4")->is(task));
  CHECK_FALSE(parse_job_name("12_0")->is(job));
  Job part;
  part.id = 13;
  part.het_job_id = 12;
  CHECK(parse_job_name("12+1")->is(part));
  CHECK_FALSE(parse_job_name("12+0")->is(part));
  for (const char* text : {"", "0", "0_1", "12_", "_3", "12+", "+1", "12_3_4", "x", "-1", "12 "})
    CHECK_FALSE(parse_job_name(text));
}
