// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/plan.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config cfg = config({nodeset("a", nodes("a", 2500))});
  FleetView fleet{};

  World() { fleet[0].groups[{"hpc-a"}].group = group("hpc-a", "hpc", "a"); }

  GroupView& own() { return fleet[0].groups[{"hpc-a"}]; }

  [[nodiscard]] SuspendPlan plan(const std::vector<NodeName>& leaving) const {
    return plan_suspend(cfg, "hpc", leaving, fleet);
  }
};

}  // namespace

TEST_CASE("plan_suspend: deletes the VMs of the nodes, and only those", "[suspend]") {
  World world;
  world.own().instances = {running({"a-0"}), running({"a-1"}), running({"a-2"})};
  const auto plan = world.plan(nodes("a", 2));
  REQUIRE(plan.deletions.size() == 1);
  REQUIRE(plan.deletions[0].instances.size() == 2);
  CHECK(plan.deletions[0].instances[1].name.text == "a-1");
  CHECK(plan.cancels.empty());
  CHECK(plan.gone.empty());
}

TEST_CASE("plan_suspend: cancels exactly the request whose nodes are all leaving", "[suspend]") {
  World world;
  world.own().requests = {request("j1-x", RequestState::Accepted, nodes("a", 2)),
                          request("j2-y", RequestState::Accepted, nodes("a", 2, 2))};
  for (const auto& node : nodes("a", 4)) world.own().instances.push_back(queued(node));
  const auto plan = world.plan(nodes("a", 2));
  REQUIRE(plan.cancels.size() == 1);
  CHECK(plan.cancels[0].request.text == "j1-x");
  CHECK(plan.cancels[0].job == 1);
  CHECK(plan.deletions.empty());
  CHECK(plan.kept.empty());
}

TEST_CASE("plan_suspend: keeps a request that other nodes still wait for", "[suspend]") {
  World world;
  world.own().requests = {request("j1-x", RequestState::Accepted, nodes("a", 4))};
  const auto plan = world.plan(nodes("a", 3));
  CHECK(plan.cancels.empty());
  REQUIRE(plan.kept.size() == 1);
  CHECK(plan.kept[0].others == 1);
  CHECK(plan.gone.empty());
}

TEST_CASE(
    "plan_suspend: finished requests, nodes that are gone or going and unknown nodes need nothing",
    "[suspend]") {
  World world;
  world.own().requests = {request("j1-x", RequestState::Succeeded, nodes("a", 1)),
                          request("j1-y", RequestState::Cancelled, nodes("a", 1, 1))};
  world.own().instances = {deleting({"a-0"})};
  const auto plan = world.plan({{"a-0"}, {"a-1"}, {"nobody"}});
  CHECK(plan.cancels.empty());
  CHECK(plan.deletions.empty());
  CHECK(plan.gone == nodes("a", 2));
  CHECK(plan.foreign == std::vector<NodeName>{{"nobody"}});
}

TEST_CASE("plan_suspend: clears the entry of a VM that vanished", "[suspend]") {
  World world;
  world.own().instances = {dead({"a-0"})};
  const auto plan = world.plan(nodes("a", 1));
  REQUIRE(plan.deletions.size() == 1);
}

TEST_CASE("plan_suspend: at most 1,000 VMs in a call", "[suspend]") {
  World world;
  for (const auto& node : nodes("a", 2000)) world.own().instances.push_back(running(node));
  const auto plan = world.plan(nodes("a", 1001));
  REQUIRE(plan.deletions.size() == 2);
  CHECK(plan.deletions[0].instances.size() == 1000);
  CHECK(plan.deletions[1].instances.size() == 1);
}

TEST_CASE("plan_suspend: a group that is not ours is never touched", "[suspend]") {
  World world;
  world.own().group->description = "somebody else's";
  world.own().instances = {running({"a-0"})};
  world.own().requests = {request("j1-x", RequestState::Accepted, nodes("a", 1))};
  const auto plan = world.plan(nodes("a", 1));
  CHECK(plan.deletions.empty());
  CHECK(plan.cancels.empty());
  CHECK(plan.gone == nodes("a", 1));
}

TEST_CASE("plan_suspend: decides nothing about what it could not see", "[suspend]") {
  World world;
  world.own().instances = {running({"a-0"})};
  world.fleet[0].error = Error{ErrorKind::Retry, "503"};
  const auto plan = world.plan(nodes("a", 1));
  CHECK(plan.deletions.empty());
  REQUIRE(plan.unseen.size() == 1);
}

TEST_CASE("plan_suspend: a queued entry without an active request is looked at again",
          "[suspend]") {
  World world;
  world.own().instances = {queued({"a-0"})};
  world.own().requests = {request("j1-x", RequestState::Succeeded, nodes("a", 1))};
  const auto plan = world.plan(nodes("a", 1));
  CHECK(plan.unclear == nodes("a", 1));
  CHECK(plan.gone.empty());
  CHECK(plan.deletions.empty());
}

TEST_CASE("plan_suspend: nodes that no group knows of may have a VM in none", "[suspend]") {
  World world;
  world.own().instances = {running({"a-0"})};
  world.own().requests = {request("j1-x", RequestState::Accepted, nodes("a", 1, 1))};
  const std::vector<NodeName> known = nodes("a", 2);
  CHECK(nodesets_without_trace(world.cfg, known, world.fleet).empty());
  const std::vector<NodeName> other = nodes("a", 3);
  CHECK(nodesets_without_trace(world.cfg, other, world.fleet) == std::set<std::string>{"a"});
}
