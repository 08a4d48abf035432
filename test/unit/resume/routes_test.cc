// SPDX-License-Identifier: GPL-2.0-or-later
// Groups of a config that has changed, ways that are shut, zones that never serve, static nodes,
// and names that are waited for.
#include "lib/fleet/routes.h"

#include "resume/apply.h"
#include "resume/next_step.h"
#include "resume/plan.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

using namespace flex;
using namespace flex::test;

namespace {

Demand for_job(const Job& wanted) {
  Demand demand;
  demand.jobs.push_back({.job = wanted, .nodes = wanted.nodes});
  return demand;
}

/// Nodeset "a", whose group was made with these zones and this template.
struct World {
  Config cfg = config({nodeset("a", nodes("a", 8))});
  FleetView fleet{};

  World() {
    Group& own = fleet[0].groups[{"hpc-a"}].group.emplace(group("hpc-a", "hpc", "a"));
    own.zones = {"us-central1-b", "us-central1-a"};
    own.instance_template =
        "https://www.googleapis.com/compute/v1/projects/p/global/instanceTemplates/a-flex";
  }

  [[nodiscard]] std::vector<std::string> groups(const Demand& demand,
                                                const PlanOptions& options = {}) const {
    std::vector<std::string> names;
    for (const GroupPlan& group : plan_resume(cfg, "hpc", demand, fleet, options).groups)
      names.push_back(group.spec.name.text);
    return names;
  }

  [[nodiscard]] std::string only_group(const PlanOptions& options = {}) const {
    const auto names = groups(for_job(job(7, nodes("a", 2), 1h)), options);
    REQUIRE(names.size() == 1);
    return names[0];
  }
};

RequestOutcome failed(const std::string& set, const std::string& code, int first = 0) {
  RequestOutcome outcome;
  outcome.request.job = 7;
  outcome.request.spec.nodes = nodes(set, 1, first);
  outcome.error = {ErrorKind::Invalid, "no", code};
  return outcome;
}

}  // namespace

TEST_CASE("plan: a group as the config has it is used, whatever order or form", "[resume]") {
  World world;
  CHECK(world.only_group() == "hpc-a");
  world.fleet[0].groups[{"hpc-a"}].group->zones.clear();  // Google does not say
  CHECK(world.only_group() == "hpc-a");
}

TEST_CASE("plan: other zones or another template go into another group", "[resume]") {
  World world;
  const std::string before = world.only_group();
  world.cfg.nodesets[0].zones = {"us-central1-c"};
  const std::string zones = world.only_group();
  CHECK(zones.starts_with("hpc-a-c"));
  CHECK(zones == world.only_group());
  world.cfg.nodesets[0].zones = {"us-central1-a", "us-central1-b"};
  CHECK(world.only_group() == before);
  world.cfg.nodesets[0].instance_template = "a-flex-2";
  const std::string other = world.only_group();
  CHECK(other.starts_with("hpc-a-c"));
  CHECK(other != zones);
  world.cfg.nodesets[0].instance_template = "regions/us-central1/instanceTemplates/a-flex";
  CHECK(world.only_group() != before);
  SECTION("also a renewal, a step, and a job's own") {
    world.cfg.nodesets[0].instance_template = "a-flex-2";
    CHECK(world.only_group({.renewed = 1, .is_second = true}) == other);
    world.cfg.nodesets[0].mig_scope = MigScope::Job;
    CHECK(world.only_group() == "hpc-a-j7");
    world.fleet[0].groups[{"hpc-a-j7"}].group = world.fleet[0].groups[{"hpc-a"}].group;
    CHECK(world.only_group().starts_with("hpc-a-j7-c"));
    world.cfg.nodesets[0].mig_scope = MigScope::Nodeset;
    world.cfg.nodesets[0].on_stockout = {{.wait = 1h, .zones = {"us-central1-d"}}};
    world.fleet[0].groups[{"hpc-a-s1"}].group = world.fleet[0].groups[{"hpc-a"}].group;
    CHECK(world.only_group({.step = 1}).starts_with("hpc-a-s1-c"));
  }
  SECTION("and each zone of a race") {
    world.cfg.nodesets[0].race = 2;
    Group lane = *world.fleet[0].groups[{"hpc-a"}].group;
    lane.zones = {"us-central1-a"};
    lane.name = {"hpc-a-za"};
    world.fleet[0].groups[{"hpc-a-za"}].group = lane;
    const auto names = world.groups(for_job(job(7, nodes("a", 2), 1h)));
    REQUIRE(names.size() == 2);
    CHECK(names[0].starts_with("hpc-a-za-c"));
    CHECK(names[1] == "hpc-a-zb");
  }
}

TEST_CASE("plan: what is shut is not asked for, unless there is nothing else", "[resume]") {
  World world;
  world.cfg.nodesets[0].race = 2;
  Demand demand = for_job(job(7, nodes("a", 1), 1h));
  demand.shut = {{{"a-0"}, {"hpc-a-za"}}};
  CHECK(world.groups(demand) == std::vector<std::string>{"hpc-a-zb"});
  demand.shut.insert({{"a-0"}, {"hpc-a-zb"}});
  CHECK(world.groups(demand).size() == 2);
  CHECK(world.groups(demand, {.is_second = true}).empty());
}

TEST_CASE("resolve_demand: a static node is nobody's, and its job is known", "[resume]") {
  auto set = nodeset("a", nodes("a", 4));
  set.static_nodes = {{"a-1"}};
  const Config cfg = config({set});
  const std::vector<Job> jobs{job(5, nodes("a", 3), 4h)};
  const auto wanted = nodes("a", 3);
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = nullptr, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].nodes == std::vector<NodeName>{{"a-0"}, {"a-2"}});
  CHECK(demand.jobless == std::vector<NodeName>{{"a-1"}});
  REQUIRE(demand.on_static.size() == 1);
  CHECK(demand.on_static[0].job.id == 5);
  FleetView fleet;
  fleet[0].groups[{"hpc-a"}].group = group("hpc-a", "hpc", "a");
  const auto plan = plan_resume(cfg, "hpc", demand, fleet);
  REQUIRE(plan.groups.size() == 1);
  REQUIRE(plan.groups[0].requests.size() == 2);
  CHECK(plan.groups[0].requests[1].spec.run_duration == kMaxRunDuration);
  CHECK(plan.groups[0].requests[1].spec.nodes == std::vector<NodeName>{{"a-1"}});
}

TEST_CASE("next step: what its zone can never serve, as long as there is another", "[resume]") {
  auto set = nodeset("a", nodes("a", 4));
  set.on_stockout = {{.wait = 1h, .zones = {"us-central1-c"}}};
  const Config cfg = config({set, nodeset("b", nodes("b", 4))});
  std::vector<RequestOutcome> outcomes{failed("a", "INVALID_MACHINE_TYPE"),
                                       failed("a", "INVALID_ARGUMENT", 1),
                                       failed("b", "INVALID_MACHINE_TYPE"),
                                       failed("a", "INVALID_MACHINE_TYPE", 2),
                                       failed("a", "", 2)};
  outcomes.back().result = RequestResult::Requested;  // another zone of its race
  CHECK(take_hopeless(cfg, outcomes, 2).empty());
  const auto taken = take_hopeless(cfg, outcomes, 1);
  REQUIRE(taken.size() == 1);
  CHECK(outcomes.size() == 4);
  Demand demand = for_job(job(7, nodes("a", 3), 1h));
  demand.jobless = {{"b-0"}};
  const Demand part = part_of(demand, taken);
  REQUIRE(part.jobs.size() == 1);
  CHECK(part.jobs[0].nodes == nodes("a", 1));
  CHECK(part.jobless.empty());
}

TEST_CASE("apply: names that are being deleted are looked for once for all requests", "[resume]") {
  World world;
  FakeCloud cloud;
  cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  Demand demand;
  demand.jobless = nodes("a", 8);
  for (const NodeName& node : demand.jobless) {
    cloud.add_instance("hpc-a", node.text);
    world.fleet[0].groups[{"hpc-a"}].instances.push_back(deleting(node));
  }
  const auto plan = plan_resume(world.cfg, "hpc", demand, world.fleet);
  const NameWait wait{.poll = std::chrono::milliseconds{1}, .limit = 5};
  const auto outcomes = apply_to_cloud(cloud, plan, wait);
  CHECK(outcomes.size() == 8);
  CHECK(outcomes.front().error.code == "NAME_IN_USE");
  CHECK(cloud.count("fetch_instances") == 6);
}
