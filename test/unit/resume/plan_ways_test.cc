// SPDX-License-Identifier: GPL-2.0-or-later
// The planner's other ways: VMs one by one, VMs without a group, placement, races, renewals,
// limits.
#include "lib/fleet/groups.h"
#include "resume/plan.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

#include <algorithm>

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config settings = config({nodeset("a", nodes("a", 8))});
  FleetView fleet{};
  Demand demand{};
  PlanOptions options{};

  World() { fleet[0]; }

  NodesetConfig& set() { return settings.nodesets[0]; }

  GroupView& owned(const std::string& name, GroupKind kind = GroupKind::Queued) {
    GroupView& view = fleet[0].groups[{name}];
    if (!view.group) {
      view.group = group(name, "hpc", "a");
      view.group->kind = kind;
    }
    return view;
  }

  void wants(JobId id, std::vector<NodeName> on, std::optional<Seconds> limit = 1h) {
    demand.jobs.push_back({.job = job(id, on, limit), .nodes = on});
  }

  [[nodiscard]] ResumePlan plan() const {
    return plan_resume(settings, "hpc", demand, fleet, options);
  }
};

std::vector<std::string> group_names(const ResumePlan& plan) {
  std::vector<std::string> names;
  for (const GroupPlan& group : plan.groups) names.push_back(group.spec.name.text);
  return names;
}

}  // namespace

TEST_CASE("plan: individual asks for VMs by name, in one call, in the nodeset's own group") {
  World world;
  world.set().mode = Mode::Individual;
  world.wants(7, nodes("a", 3));
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].spec.name.text == "hpc-a");
  CHECK(plan.groups[0].spec.kind == GroupKind::Individual);
  REQUIRE(plan.groups[0].requests.size() == 1);
  CHECK(plan.groups[0].requests[0].spec.name.empty());
  CHECK(plan.groups[0].requests[0].spec.nodes == nodes("a", 3));
}

TEST_CASE("plan: individual leaves alone what waits in the queue, and asks for what is dead") {
  World world;
  world.set().mode = Mode::Individual;
  GroupView& own = world.owned("hpc-a", GroupKind::Individual);
  own.instances = {queued({"a-0"}), running({"a-1"}), {.name = {"a-2"}}};
  own.instances[0].status = GENERATE(InstanceStatus::None, InstanceStatus::Pending);
  world.wants(7, nodes("a", 3));
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 1);
  const PlannedRequest& asked = plan.groups[0].requests.at(0);
  CHECK(asked.spec.nodes == nodes("a", 1, 2));
  REQUIRE(asked.dead.size() == 1);
  CHECK(asked.dead.at({"hpc-a"}).at(0).name.text == "a-2");
  CHECK(plan.left_alone == nodes("a", 2));
}

TEST_CASE("plan: a group of the other kind is not used; one beside it is") {
  World world;
  world.owned("hpc-a", GroupKind::Queued).instances = {running({"a-5"})};
  world.set().mode = Mode::Individual;
  world.wants(7, nodes("a", 1));
  CHECK(group_names(world.plan()) == std::vector<std::string>{"hpc-a-i"});
  world.fleet[0].groups[{"hpc-a"}].group->kind = GroupKind::Individual;
  world.set().mode = Mode::Queued;
  CHECK(group_names(world.plan()) == std::vector<std::string>{"hpc-a-q"});
}

TEST_CASE("plan: bulk_insert asks for all of a job's nodes or none, for jobless ones each") {
  World world;
  world.set().mode = Mode::BulkInsert;
  world.set().run_duration_margin = 0s;
  world.wants(7, nodes("a", 3), 45s);
  world.demand.jobless = nodes("a", 2, 5);
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 2);
  const BulkSpec& mine = plan.groups[0].requests.at(0).bulk;
  CHECK(plan.groups[0].spec.kind == GroupKind::Loose);
  CHECK(plan.groups[0].spec.name.empty());
  CHECK(mine.description == "slurm-flex-start cluster=hpc nodeset=a job=7");
  CHECK(mine.min_count == 3);
  CHECK(mine.run_duration == 45s);
  CHECK(mine.zones == world.set().zones);
  const BulkSpec& others = plan.groups[1].requests.at(0).bulk;
  CHECK(others.nodes == nodes("a", 2, 5));
  CHECK(others.min_count == 1);
  CHECK(others.run_duration == 7 * 24h);
}

TEST_CASE("plan: bulk_insert leaves VMs alone and clears stopped ones") {
  World world;
  world.set().mode = Mode::BulkInsert;
  GroupView& loose = world.fleet[0].groups[{}];
  loose.group = loose_group("hpc", "a");
  Instance stopped = running({"a-1"});
  stopped.status = InstanceStatus::Terminated;
  loose.instances = {running({"a-0"}), stopped};
  world.wants(7, nodes("a", 2));
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 1);
  const PlannedRequest& asked = plan.groups[0].requests.at(0);
  CHECK(asked.bulk.nodes == nodes("a", 1, 1));
  CHECK(asked.dead.size() == 1);
  CHECK(asked.awaited.at({}) == nodes("a", 1, 1));
}

TEST_CASE("plan: bulk_insert leaves alone a VM that waits, and asks for the others") {
  World world;
  world.set().mode = Mode::BulkInsert;
  GroupView& loose = world.fleet[0].groups[{}];
  loose.group = loose_group("hpc", "a");
  loose.instances = {queued({"a-1"})};
  world.wants(7, nodes("a", 2));
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].requests.at(0).bulk.nodes == nodes("a", 1));
  CHECK(plan.left_alone == nodes("a", 1, 1));
}

TEST_CASE("plan: placement gives each group of a job its policy, and no more nodes than it holds") {
  World world;
  world.settings = config({nodeset("a", nodes("a", 50))});
  world.set().mig_scope = MigScope::Job;
  world.set().placement.max_distance = 1;
  world.wants(7, nodes("a", 50));
  const ResumePlan plan = world.plan();
  CHECK(group_names(plan) == std::vector<std::string>{"hpc-a-j7", "hpc-a-j7-2", "hpc-a-j7-3"});
  CHECK(plan.groups[0].requests.at(0).spec.nodes.size() == 22);
  CHECK(plan.groups[2].requests.at(0).spec.nodes.size() == 6);
  for (const GroupPlan& group : plan.groups) {
    REQUIRE(group.policy);
    CHECK(group.policy->name == group.spec.name.text);
    CHECK(group.spec.policy == group.policy->name);
    CHECK(group.policy->max_distance == 1);
    CHECK(is_owned(group.policy->description, "hpc", "a"));
  }
}

TEST_CASE("plan: what a job lacks of its second group is asked for there, not in the first") {
  World world;
  world.settings = config({nodeset("a", nodes("a", 44))});
  world.set().mig_scope = MigScope::Job;
  world.set().placement.max_distance = 1;
  const auto all = nodes("a", 44);
  world.demand.jobs.push_back({.job = job(7, all, 1h), .nodes = nodes("a", 22, 22)});
  CHECK(group_names(world.plan()) == std::vector<std::string>{"hpc-a-j7-2"});
}

TEST_CASE("plan: more than a thousand VMs without a group are several calls") {
  World world;
  world.settings = config({nodeset("a", nodes("a", 1500))});
  world.set().mode = Mode::BulkInsert;
  world.demand.jobless = nodes("a", 1500);
  const ResumePlan plan = world.plan();
  REQUIRE(plan.groups.size() == 2);
  CHECK(plan.groups[0].requests[0].bulk.nodes.size() == 1000);
  CHECK(plan.groups[1].requests[0].bulk.nodes.size() == 500);
}

TEST_CASE("plan: a race asks in each of its zones, under a group of its own") {
  World world;
  world.set().race = 2;
  world.wants(7, nodes("a", 2));
  const ResumePlan plan = world.plan();
  CHECK(group_names(plan) == std::vector<std::string>{"hpc-a-za", "hpc-a-zb"});
  for (const GroupPlan& group : plan.groups) {
    CHECK(group.spec.zones.size() == 1);
    ResizeRequest made;
    made.description = group.requests.at(0).spec.description;
    CHECK(request_way(made).is_race);
  }
  CHECK(plan.capped.empty());
}

TEST_CASE("plan: what is asked for a second time goes to another group, and waits for no name") {
  World world;
  GroupView& own = world.owned("hpc-a");
  ResizeRequest old = request("j7-x", RequestState::Accepted, nodes("a", 2));
  own.requests = {old};
  own.instances = {queued({"a-0"}), queued({"a-1"})};
  world.wants(7, nodes("a", 2));
  CHECK(world.plan().groups.empty());
  world.options = {.attempt = 2, .renewed = 1, .is_second = true};
  const ResumePlan plan = world.plan();
  REQUIRE(group_names(plan) == std::vector<std::string>{"hpc-a-r"});
  CHECK(plan.groups[0].requests.at(0).awaited.empty());
  CHECK(plan.groups[0].requests.at(0).way.renewed == 1);
  // And back again.
  world.owned("hpc-a-r").requests = {old};
  own.requests[0].state = RequestState::Cancelled;
  own.instances.clear();
  CHECK(group_names(world.plan()) == std::vector<std::string>{"hpc-a"});
}

TEST_CASE("plan: a step of on_stockout has its own group, zones and template") {
  World world;
  world.set().on_stockout = {
      {.wait = 1min, .zones = {"us-central1-f"}, .instance_template = "other"}};
  world.wants(7, nodes("a", 2));
  world.options = {.step = 1, .is_second = true};
  const ResumePlan plan = world.plan();
  REQUIRE(group_names(plan) == std::vector<std::string>{"hpc-a-s1"});
  CHECK(plan.groups[0].spec.zones == std::vector<std::string>{"us-central1-f"});
  CHECK(plan.groups[0].spec.instance_template == "other");
}
