// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/wanted.h"

#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_scheduler.h"

#include <slurm/slurm.h>

#include <algorithm>

using namespace flex;
using namespace flex::test;

namespace {

PlannedRequest planned(JobId id, const std::vector<NodeName>& on) {
  PlannedRequest request;
  request.job = id;
  request.spec.name = RequestName{"j1-abc"};
  request.spec.nodes = on;
  return request;
}

}  // namespace

TEST_CASE("is_still_wanted: by the same run of a job that holds all of the nodes", "[resume]") {
  const PlannedRequest request = planned(1, nodes("a", 2));
  Job one = job(1, nodes("a", 3), 4h);
  CHECK(is_still_wanted(request, std::vector{one}, {}));
  CHECK_FALSE(is_still_wanted(request, std::vector{job(2, nodes("a", 3), 4h)}, {}));
  const int change = GENERATE(0, 1, 2, 3);
  if (change == 0) one.is_finished = true;
  if (change == 1) one.is_pending = true;
  if (change == 2) one.restart_count = 1;
  if (change == 3) one.nodes = nodes("a", 3, 1);
  CHECK_FALSE(is_still_wanted(request, std::vector{one}, {}));
}

TEST_CASE("is_still_wanted: nodes without a job, until they are up or go down", "[resume]") {
  FakeScheduler scheduler;
  scheduler.add_node("a-0");
  const PlannedRequest request = planned(0, nodes("a", 1));
  CHECK(is_still_wanted(request, {}, scheduler.nodes));
  REQUIRE(scheduler.update_nodes(nodes("a", 1), NodeRequest::PowerUp, ""));
  CHECK(is_still_wanted(request, {}, scheduler.nodes));
  const bool is_leaving = GENERATE(false, true);
  scheduler.nodes[0].state = NODE_STATE_IDLE | NODE_STATE_CLOUD;
  if (is_leaving) scheduler.nodes[0].state |= NODE_STATE_POWERING_DOWN;
  CHECK_FALSE(is_still_wanted(request, {}, scheduler.nodes));
}

TEST_CASE("WantedNow: one question for many requests, none again if nobody answers", "[resume]") {
  FakeScheduler scheduler;
  ResumePlan plan;
  plan.groups.emplace_back();
  plan.groups[0].requests = {planned(1, nodes("a", 2)), planned(2, nodes("a", 2, 2))};
  scheduler.jobs = {job(1, nodes("a", 2), 4h)};
  const bool is_silent = GENERATE(false, true);
  if (is_silent) scheduler.fail_next("load_jobs", {ErrorKind::Retry, "no answer"}, 10);
  WantedNow wanted{scheduler, plan};
  CHECK(wanted(plan.groups[0].requests[0]));
  CHECK(wanted(plan.groups[0].requests[1]) == is_silent);
  CHECK(std::count(scheduler.calls.begin(), scheduler.calls.end(), "load_jobs") == 1);
}
