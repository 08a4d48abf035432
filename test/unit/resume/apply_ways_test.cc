// SPDX-License-Identifier: GPL-2.0-or-later
// Carrying out the planner's other ways.
#include "lib/core/names.h"
#include "resume/apply.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  FakeCloud cloud{};
  Config settings = config({nodeset("a", nodes("a", 8))});
  Demand demand{};

  explicit World(Mode mode) {
    settings.nodesets[0].mode = mode;
    const auto wanted = nodes("a", 2);
    demand.jobs.push_back({.job = job(7, wanted, 1h), .nodes = wanted});
  }

  std::vector<RequestOutcome> resume() {
    const FleetView fleet = fetch_fleet(cloud, settings, "hpc", nodes("a", 2));
    const ResumePlan plan = plan_resume(settings, "hpc", demand, fleet);
    return apply_to_cloud(cloud, plan);
  }
};

}  // namespace

TEST_CASE("apply: individual creates its group, then the VMs; a second time nothing is asked") {
  World world{Mode::Individual};
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
  CHECK(world.cloud.groups.at("hpc-a").spec.kind == GroupKind::Individual);
  CHECK(world.cloud.groups.at("hpc-a").instances.size() == 2);
  CHECK(world.resume().empty());
  CHECK(world.cloud.count("create_instances") == 1);
}

TEST_CASE("apply: an answer that was lost is no reason to ask twice") {
  World world{Mode::Individual};
  world.cloud.lose_reply("create_instances");
  REQUIRE(world.resume().size() == 1);
  CHECK(world.cloud.groups.at("hpc-a").instances.size() == 2);
  CHECK(world.resume().empty());

  World bulk{Mode::BulkInsert};
  bulk.cloud.lose_reply("bulk_insert");
  const auto outcomes = bulk.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Existing);
  CHECK(bulk.resume().empty());
}

TEST_CASE("apply: bulk_insert waits for its operation, and its error is the nodes'") {
  World world{Mode::BulkInsert};
  world.cloud.next_operation_error("bulk_insert",
                                   {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "full"});
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK(outcomes[0].error.kind == ErrorKind::NoCapacity);
  CHECK(outcomes[0].request.spec.nodes == nodes("a", 2));
}

TEST_CASE("apply: placement makes the policy before the group, and takes one that is there") {
  for (const bool is_there : {false, true}) {
    World world{Mode::Queued};
    world.settings.nodesets[0].mig_scope = MigScope::Job;
    world.settings.nodesets[0].placement.max_distance = 2;
    if (is_there) world.cloud.policies["hpc-a-j7"] = {.name = "hpc-a-j7"};
    const auto outcomes = world.resume();
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes[0].result == RequestResult::Requested);
    CHECK(world.cloud.groups.at("hpc-a-j7").spec.policy == "hpc-a-j7");
    CHECK(world.cloud.count("insert_policy") == 1);
  }
}

TEST_CASE("apply: without its policy a group is not made") {
  World world{Mode::Queued};
  world.settings.nodesets[0].mig_scope = MigScope::Job;
  world.settings.nodesets[0].placement.max_distance = 2;
  world.cloud.next_error("insert_policy", {ErrorKind::Denied, "no", "forbidden"});
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK(world.cloud.groups.empty());
}

TEST_CASE("apply: one lane of a race that is refused for good costs the job nothing") {
  World world{Mode::Queued};
  world.settings.nodesets[0].race = 2;
  world.cloud.next_error("insert_group", {ErrorKind::Invalid, "no such zone", "invalid"});
  auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 2);
  std::vector<Refusal> refusals;
  spare_asked(outcomes, refusals);
  for (const RequestOutcome& outcome : outcomes) CHECK_FALSE(is_permanent(outcome.error));

  World alone{Mode::Queued};
  alone.cloud.next_error("insert_group", {ErrorKind::Invalid, "no such zone", "invalid"});
  auto lost = alone.resume();
  spare_asked(lost, refusals);
  REQUIRE(lost.size() == 1);
  CHECK(is_permanent(lost[0].error));
}
