// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"
#include "resume/apply.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_scheduler.h"

#include <string>

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config settings = config({nodeset("a", nodes("a", 8))});
  FakeScheduler scheduler{};
  Demand demand{};
  ResumePlan plan{};
  std::vector<RequestOutcome> outcomes{};

  World() {
    for (const auto& node : nodes("a", 8)) scheduler.add_node(node.text);
  }

  Job& wants(JobId id, const std::vector<NodeName>& on) {
    const Job& added = scheduler.add_job(id, on, 4h);
    demand.jobs.push_back({.job = added, .nodes = on});
    return demand.jobs.back().job;
  }

  void fails(JobId id, const std::vector<NodeName>& on, Error error) {
    RequestOutcome outcome;
    outcome.request.job = id;
    outcome.request.spec.nodes = on;
    outcome.error = std::move(error);
    outcomes.push_back(std::move(outcome));
  }

  bool report() {
    const Log quiet{[](LogLevel, std::string_view) {}, LogLevel::Error};
    const GiveBackTo slurm{.scheduler = scheduler, .config = settings, .log = quiet};
    return release_unwanted(slurm, demand.unwanted) &&
           apply_to_slurm(slurm, {demand, plan, outcomes});
  }
};

}  // namespace

TEST_CASE("give back: a job that can never be served is told, held, and its nodes go in one call",
          "[resume]") {
  World world;
  world.wants(1, nodes("a", 2)).admin_comment = "billing=7";
  world.wants(2, nodes("a", 2, 2));
  world.fails(1, nodes("a", 2), {ErrorKind::Invalid, "no template 'a-flex'"});
  world.fails(2, nodes("a", 2, 2), {ErrorKind::Denied, "no permission"});
  CHECK(world.report());
  REQUIRE(world.scheduler.updates.size() == 5);
  CHECK(world.scheduler.updates[0].what == "admin_comment");
  CHECK_THAT(world.scheduler.updates[0].text,
             StartsWith("billing=7 | flex: no VMs: no template 'a-flex'"));
  CHECK(world.scheduler.updates[1].what == "requeue_hold");
  CHECK(world.scheduler.updates[4].what == "node POWER_DOWN_FORCE");
  CHECK(world.scheduler.updates[4].nodes == nodes("a", 4));
}

TEST_CASE("give back: a failure that passes changes nothing in Slurm", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  const auto kind = GENERATE(ErrorKind::Retry,
                             ErrorKind::Quota,
                             ErrorKind::NoCapacity,
                             ErrorKind::Internal,
                             ErrorKind::NotFound);
  world.fails(1, nodes("a", 2), {kind, "later"});
  CHECK(world.report());
  CHECK(world.scheduler.updates.empty());
}

TEST_CASE("give back: an interactive job is not requeued, its nodes end it", "[resume]") {
  World world;
  world.wants(1, nodes("a", 1)).is_batch = false;
  world.fails(1, nodes("a", 1), {ErrorKind::Invalid, "bad"});
  CHECK(world.report());
  REQUIRE(world.scheduler.updates.size() == 2);
  CHECK(world.scheduler.updates[1].what == "node POWER_DOWN_FORCE");
}

TEST_CASE("give back: the nodes of all of a job's requests go, those that are up stay",
          "[resume]") {
  World world;
  world.wants(1, nodes("a", 4)).nodes = nodes("a", 6);
  world.fails(1, nodes("a", 2), {ErrorKind::Invalid, "bad"});
  CHECK(world.report());
  CHECK(world.scheduler.updates.back().nodes == nodes("a", 4));
}

TEST_CASE("give back: nodes whose job is gone are powered down, and a capped job is told",
          "[resume]") {
  World world;
  world.wants(1, nodes("a", 1));
  world.plan.capped = {{.job = 1, .note = note_capped(200h, 168h)}};
  world.demand.unwanted = nodes("a", 1, 5);
  CHECK(world.report());
  REQUIRE(world.scheduler.updates.size() == 2);
  CHECK(world.scheduler.updates[0].nodes == nodes("a", 1, 5));
  CHECK_THAT(world.scheduler.updates[1].text, ContainsSubstring("VMs live at most 7-00:00:00"));
}

TEST_CASE("give back: says so if Slurm did not take it", "[resume]") {
  World world;
  world.wants(1, nodes("a", 1));
  world.fails(1, nodes("a", 1), {ErrorKind::Invalid, "bad"});
  world.scheduler.fail_next("update_nodes", {ErrorKind::Retry, "slurmctld is away"});
  CHECK_FALSE(world.report());
}
