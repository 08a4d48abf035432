// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/apply.h"

#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config cfg = config({nodeset("a", nodes("a", 8)), nodeset("b", nodes("b", 8))});
  FakeCloud cloud{};
  Demand demand{};

  World() { cloud.add_group("hpc-a", ownership_mark("hpc", "a")); }

  void wants(JobId id, const std::vector<NodeName>& on) {
    demand.jobs.push_back({.job = job(id, on, 4h), .nodes = on});
  }

  std::vector<RequestOutcome> resume() {
    std::vector<NodeName> all;
    for (const auto& wanted : demand.jobs)
      all.insert(all.end(), wanted.nodes.begin(), wanted.nodes.end());
    const auto fleet = fetch_fleet(cloud, cfg, "hpc", all);
    const auto plan = plan_resume(cfg, "hpc", demand, fleet);
    refusals = plan.refusals.size();
    return apply_to_cloud(cloud, plan);
  }

  std::size_t refusals = 0;
};

}  // namespace

TEST_CASE("resume: an existing group takes one look and one write per job", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  world.wants(2, nodes("a", 2, 2));
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[0].result == RequestResult::Requested);
  CHECK(world.cloud.calls.size() == 5);
  CHECK(world.cloud.count("insert_request") == 2);
  CHECK(world.cloud.groups.at("hpc-a").requests.size() == 2);
}

TEST_CASE("resume: run again, it asks for nothing", "[resume]") {
  World world;
  world.wants(1, nodes("a", 4));
  REQUIRE(world.resume().size() == 1);
  CHECK(world.resume().empty());
  CHECK(world.cloud.groups.at("hpc-a").requests.size() == 1);
}

TEST_CASE("resume: a request whose answer was lost is found, not made twice", "[resume]") {
  World world;
  world.wants(1, nodes("a", 4));
  world.cloud.lose_reply("insert_request");
  const auto first = world.resume();
  REQUIRE(first.size() == 1);
  CHECK(first[0].result == RequestResult::Failed);
  CHECK_FALSE(is_permanent(first[0].error));
  CHECK(world.resume().empty());
  CHECK(world.cloud.groups.at("hpc-a").requests.size() == 1);
}

TEST_CASE("resume: a group is created on first need, waited for and then used", "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
  REQUIRE(world.cloud.groups.count("hpc-b") == 1);
  CHECK(world.cloud.groups.at("hpc-b").group.description == ownership_mark("hpc", "b"));
  CHECK(world.cloud.count("wait_operation") == 1);
}

TEST_CASE("resume: a group that another process has just created is used if it is ours",
          "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  world.cloud.next_error("insert_group", {ErrorKind::AlreadyExists, "already exists"});
  auto outcomes = world.resume();  // not there after all: nothing is asked for
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Failed);

  world.cloud.lose_reply("insert_group");
  outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK_FALSE(is_permanent(outcomes[0].error));
  outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
}

TEST_CASE("resume: one nodeset's failure does not touch the other's request", "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  world.wants(2, nodes("a", 2));
  world.cloud.next_error("insert_group", {ErrorKind::Invalid, "no such template"});
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 2);
  for (const auto& outcome : outcomes) {
    CHECK((outcome.request.job == 1) == (outcome.result == RequestResult::Failed));
    if (outcome.request.job == 1) CHECK(is_permanent(outcome.error));
  }
}

TEST_CASE("resume: the group's operation may fail, too", "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  world.cloud.next_operation_error(
      "insert_group", {.code = "QUOTA_EXCEEDED", .message = "REGIONAL_INSTANCE_GROUP_MANAGERS"});
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK(world.cloud.count("insert_request") == 0);
}

TEST_CASE("resume: clears an entry without a VM before it asks for the name", "[resume]") {
  World world;
  world.cloud.groups.at("hpc-a").instances = {dead({"a-0"})};
  world.wants(1, nodes("a", 2));
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
  CHECK(world.cloud.count("delete_instances") == 1);
}

TEST_CASE("resume: a name that stays in use is left to be asked for later", "[resume]") {
  World world;
  world.cloud.groups.at("hpc-a").instances = {deleting({"a-0"})};
  world.wants(1, nodes("a", 2));
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK(outcomes[0].error.code == "NAME_IN_USE");
  CHECK_FALSE(is_permanent(outcomes[0].error));
  CHECK(world.cloud.count("insert_request") == 0);
}

TEST_CASE("resume: an incomplete look asks for nothing", "[resume]") {
  for (const char* method : {"fetch_groups", "fetch_requests", "fetch_instances"}) {
    World world;
    world.wants(1, nodes("a", 2));
    world.cloud.next_error(method, {ErrorKind::Retry, "503"});
    CHECK(world.resume().empty());
    CHECK(world.refusals == 1);
    CHECK(world.cloud.count("insert_request") == 0);
  }
}

TEST_CASE("resume: a name that is still in use holds up its own request only", "[resume]") {
  World world;
  world.cloud.groups.at("hpc-a").instances = {deleting({"a-0"})};
  world.wants(1, nodes("a", 2));
  world.wants(2, nodes("a", 2, 2));
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 2);
  CHECK(outcomes[0].request.job == 2);
  CHECK(outcomes[0].result == RequestResult::Requested);
  CHECK(outcomes[1].result == RequestResult::Failed);
}

TEST_CASE("resume: a finished request that the look did not show does not pass for a new one",
          "[resume]") {
  World world;
  world.cfg.nodesets[0].mig_scope = MigScope::Job;
  const auto state =
      GENERATE(RequestState::Succeeded, RequestState::Failed, RequestState::Cancelled);
  world.wants(1, nodes("a", 2));
  auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  auto& own = world.cloud.groups.at("hpc-a-j1");
  REQUIRE(own.requests.size() == 1);
  own.requests[0].state = state;
  own.instances.clear();
  own.group.target_size = 0;  // empty groups are not looked into
  outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
  CHECK(own.requests.size() == 2);
}

TEST_CASE("resume: a request that was served since the look is what was wanted", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  // The look of the one that comes second is from before the first one asked.
  const auto early = fetch_fleet(world.cloud, world.cfg, "hpc", nodes("a", 2));
  const auto plan = plan_resume(world.cfg, "hpc", world.demand, early);
  REQUIRE(world.resume().size() == 1);
  auto& home = world.cloud.groups.at("hpc-a");
  world.cloud.serve("hpc-a", home.requests[0].name.text);
  const auto outcomes = apply_to_cloud(world.cloud, plan);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Existing);
  CHECK(home.requests.size() == 1);
}

TEST_CASE("resume: what was served and is over when the job is gone is not asked for again",
          "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  const auto early = fetch_fleet(world.cloud, world.cfg, "hpc", nodes("a", 2));
  const auto plan = plan_resume(world.cfg, "hpc", world.demand, early);
  REQUIRE(world.resume().size() == 1);
  auto& home = world.cloud.groups.at("hpc-a");
  home.requests[0].state =
      GENERATE(RequestState::Succeeded, RequestState::Failed, RequestState::Cancelled);
  home.instances.clear();  // its VMs are gone, as the job is
  const bool is_wanted = GENERATE(false, true);
  std::size_t questions = 0;
  const auto outcomes = apply_to_cloud(world.cloud, plan, {}, [&](const PlannedRequest& request) {
    ++questions;
    CHECK(request.job == 1);
    return is_wanted;
  });
  REQUIRE(outcomes.size() == 1);
  CHECK(questions == 1);
  CHECK(outcomes[0].result == (is_wanted ? RequestResult::Requested : RequestResult::Unwanted));
  CHECK(home.requests.size() == (is_wanted ? 2 : 1));
}

TEST_CASE("resume: a job that has gone while its group was made is not asked for", "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  const auto look = fetch_fleet(world.cloud, world.cfg, "hpc", nodes("b", 2));
  const auto plan = plan_resume(world.cfg, "hpc", world.demand, look);
  const auto outcomes =
      apply_to_cloud(world.cloud, plan, {}, [](const PlannedRequest&) { return false; });
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Unwanted);
  CHECK(world.cloud.count("insert_request") == 0);
}

TEST_CASE("resume: slurmctld is not asked again where nothing was waited for", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  const auto look = fetch_fleet(world.cloud, world.cfg, "hpc", nodes("a", 2));
  const auto plan = plan_resume(world.cfg, "hpc", world.demand, look);
  const auto outcomes =
      apply_to_cloud(world.cloud, plan, {}, [](const PlannedRequest&) { return false; });
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].result == RequestResult::Requested);
}

TEST_CASE("resume: a template, region or project that is not there is final", "[resume]") {
  World world;
  world.wants(1, nodes("b", 2));
  world.cloud.next_error("insert_group", {ErrorKind::NotFound, "no such region"});
  const auto outcomes = world.resume();
  REQUIRE(outcomes.size() == 1);
  CHECK(is_permanent(outcomes[0].error));
}

TEST_CASE("resume: a used-up quota is tried a few times, then left for later", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  world.cloud.next_error("insert_request", {ErrorKind::Quota, "IN_USE_ADDRESSES"});
  CHECK(world.resume()[0].result == RequestResult::Requested);

  World full;
  full.wants(1, nodes("a", 2));
  for (int i = 0; i < 20; ++i)
    full.cloud.next_error("insert_request", {ErrorKind::Quota, "IN_USE_ADDRESSES"});
  const auto outcomes = full.resume();
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK_FALSE(is_permanent(outcomes[0].error));
  CHECK(full.cloud.count("insert_request") == 4);
}

TEST_CASE("resume: where too many requests are active nobody is overtaken", "[resume]") {
  World world;
  world.wants(1, nodes("a", 2));
  world.cloud.next_error("insert_request", {ErrorKind::Quota, "Quota 'ACTIVE_RESIZE_REQUESTS'"});
  const auto outcomes = world.resume();
  CHECK(outcomes[0].result == RequestResult::Failed);
  CHECK_FALSE(is_permanent(outcomes[0].error));
  CHECK(world.cloud.count("insert_request") == 1);
}

TEST_CASE("cancel_first: what cannot be cancelled keeps its nodes from being asked for twice",
          "[resume]") {
  World world;
  world.wants(7, nodes("a", 2));
  REQUIRE(world.resume().size() == 1);
  const auto fleet = fetch_fleet(world.cloud, world.cfg, "hpc", nodes("a", 8));
  Demand demand;
  const Job wanted = job(8, nodes("a", 4), 4h);
  demand.jobs.push_back({.job = wanted, .nodes = wanted.nodes});
  demand.living = {wanted};
  ResumePlan plan = plan_resume(world.cfg, "hpc", demand, fleet);
  if (plan.cancels.empty()) {  // still being created
    CHECK(plan.refusals.size() == 1);
    return;
  }
  plan.cancels[0].group = {"nowhere"};
  const auto outcomes = cancel_first(world.cloud, plan);
  REQUIRE(outcomes.size() == 1);
  CHECK_FALSE(outcomes[0].error);  // what is gone needs no cancelling
  CHECK(plan.groups.size() == 1);
}
