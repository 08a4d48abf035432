// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/plan.h"

#include "lib/fleet/groups.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

#include <slurm/slurm.h>

#include <set>

using namespace flex;
using namespace flex::test;

namespace {

Demand for_job(const Job& wanted) {
  Demand demand;
  demand.jobs.push_back({.job = wanted, .nodes = wanted.nodes});
  return demand;
}

/// A nodeset whose own group exists and is empty.
FleetView empty_group(const std::string& set, std::size_t index = 0) {
  FleetView fleet;
  fleet[index].groups[{"hpc-" + set}].group = group("hpc-" + set, "hpc", set);
  return fleet;
}

}  // namespace

TEST_CASE("run_duration: time limit plus margin, within Google's and the admin's limits",
          "[fleet]") {
  struct Row {
    const char* label;
    std::optional<Seconds> limit;
    Seconds margin;
    Seconds longest;
    bool use_job;
    Seconds run;
    bool capped;
  };

  const auto row = GENERATE(values<Row>({
      {"4 h and 15 min", 4h, 15min, 168h, true, 15300s, false},
      {"5 min and 15 min", 5min, 15min, 168h, true, 1200s, false},
      {"below the floor", 5min, 0s, 168h, true, 600s, false},
      {"8 days", 192h, 15min, 168h, true, 604800s, true},
      {"exactly the longest", 168h, 0s, 168h, true, 604800s, false},
      {"only the margin is over", 168h, 15min, 168h, true, 604800s, true},
      {"no limit", std::nullopt, 15min, 168h, true, 604800s, false},
      {"a lower cap", 4h, 15min, 1h, true, 3600s, true},
      {"not asked to use the job's", 4h, 15min, 24h, false, 86400s, false},
  }));
  INFO(row.label);
  auto set = nodeset("a", nodes("a", 1));
  set.run_duration_margin = row.margin;
  set.dws_flex.max_run_duration = row.longest;
  set.dws_flex.use_job_duration = row.use_job;
  const auto duration = run_duration(set, row.limit, Mode::Queued);
  CHECK(duration.run == row.run);
  CHECK(duration.is_capped == row.capped);
}

TEST_CASE("run_duration: what the job's author asks for, within what the nodeset allows",
          "[resume]") {
  auto set = nodeset("a", nodes("a", 1));
  set.dws_flex.max_run_duration = 24h;
  Job asking = job(12, nodes("a", 1), 4h);
  asking.comment = "Monday flex(run=10h)";
  CHECK(run_duration(set, &asking, Mode::Queued).run == 10h);
  CHECK(!run_duration(set, &asking, Mode::Queued).unmet_wish);
  CHECK(shortfall_note(run_duration(set, &asking, Mode::Queued), 4h).empty());
  // Shorter than its limit, if that is what it wants.
  asking.comment = "flex(run=1h)";
  CHECK(run_duration(set, &asking, Mode::Queued).run == 1h);
  asking.comment = "flex(run=2d)";
  CHECK(run_duration(set, &asking, Mode::Queued).run == 24h);
  CHECK(shortfall_note(run_duration(set, &asking, Mode::Queued), 4h) ==
        "asked for VMs that live 2-00:00:00, but here they live 1-00:00:00 from their start");
  // Where the admin gives all VMs the same life.
  asking.comment = "flex(run=10h)";
  CHECK(run_duration(set, &asking, Mode::Individual).run == 24h);
  CHECK(run_duration(set, &asking, Mode::Individual).unmet_wish == 10h);
  set.dws_flex.use_job_duration = false;
  CHECK(run_duration(set, &asking, Mode::Queued).run == 24h);
  CHECK(run_duration(set, &asking, Mode::Queued).unmet_wish == 10h);
  CHECK(run_duration(set, nullptr, Mode::Queued).run == 24h);
}

TEST_CASE("plan_resume: one all-or-nothing request for a job's nodes", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 16))});
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), empty_group("a"));
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].exists);
  CHECK(plan.groups[0].spec.name.text == "hpc-a");
  REQUIRE(plan.groups[0].requests.size() == 1);
  const auto& spec = plan.groups[0].requests[0].spec;
  CHECK(spec.nodes == nodes("a", 4));
  CHECK(spec.run_duration == 15300s);
  CHECK(spec.group.text == "hpc-a");
  CHECK(spec.description == "slurm-flex-start job=12 nodes=a-[0-3]");
  CHECK_THAT(spec.name.text, StartsWith("j12-"));
  CHECK(plan.refusals.empty());
}

TEST_CASE("plan_resume: a group that does not exist yet is to be created", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  FleetView fleet;
  fleet[0].groups[{"hpc-a"}] = {};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  REQUIRE(plan.groups.size() == 1);
  CHECK_FALSE(plan.groups[0].exists);
  CHECK(plan.groups[0].spec.description == "slurm-flex-start cluster=hpc nodeset=a");
  CHECK(plan.groups[0].spec.instance_template == "a-flex");
  CHECK(plan.groups[0].spec.zones == std::vector<std::string>{"us-central1-a", "us-central1-b"});
}

TEST_CASE("plan_resume: the same resume twice asks once", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  auto fleet = empty_group("a");
  const auto first = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  const auto again = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  CHECK(first.groups[0].requests[0].spec.name == again.groups[0].requests[0].spec.name);

  const auto state = GENERATE(RequestState::Creating,
                              RequestState::Accepted,
                              RequestState::Provisioning,
                              RequestState::Unknown);
  fleet[0].groups[{"hpc-a"}].requests = {
      request(first.groups[0].requests[0].spec.name.text, state, nodes("a", 4))};
  const auto seen = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  CHECK(seen.groups.empty());
  CHECK(seen.left_alone == nodes("a", 4));
}

TEST_CASE("plan_resume: a finished request of the same name is not asked for again under that name",
          "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  auto fleet = empty_group("a");
  std::set<std::string> names;
  for (int attempt = 0; attempt < 4; ++attempt) {
    const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
    REQUIRE(plan.groups.size() == 1);
    const std::string name = plan.groups[0].requests[0].spec.name.text;
    CHECK(names.insert(name).second);
    fleet[0].groups[{"hpc-a"}].requests.push_back(
        request(name, RequestState::Cancelled, nodes("a", 4)));
  }
}

TEST_CASE("plan_resume: leaves a node with a VM alone and asks for the others", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  auto fleet = empty_group("a");
  fleet[0].groups[{"hpc-a"}].instances = {running({"a-1"})};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  CHECK(plan.left_alone == nodes("a", 1, 1));
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].requests[0].spec.nodes == std::vector<NodeName>{{"a-0"}, {"a-2"}, {"a-3"}});
  CHECK(plan.groups[0].requests[0].awaited.empty());
}

TEST_CASE("plan_resume: clears an entry whose VM vanished, and waits for one that is leaving",
          "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  auto fleet = empty_group("a");
  fleet[0].groups[{"hpc-a"}].instances = {dead({"a-0"}), deleting({"a-1"})};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  REQUIRE(plan.groups.size() == 1);
  REQUIRE(plan.groups[0].requests[0].dead.size() == 1);
  CHECK(plan.groups[0].requests[0].dead.at({"hpc-a"}).at(0).name.text == "a-0");
  CHECK(plan.groups[0].requests[0].awaited.at({"hpc-a"}) == nodes("a", 2));
  CHECK(plan.groups[0].requests[0].spec.nodes == nodes("a", 4));
}

TEST_CASE("plan_resume: a group with our name that is not ours is not touched", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4)), nodeset("b", nodes("b", 4))});
  auto fleet = empty_group("b", 1);
  fleet[0].groups[{"hpc-a"}].group = group("hpc-a", "other", "a");
  Demand demand = for_job(job(12, nodes("a", 4), 4h));
  demand.jobs.push_back({.job = job(13, nodes("b", 1), 1h), .nodes = nodes("b", 1)});
  const auto plan = plan_resume(cfg, "hpc", demand, fleet);
  REQUIRE(plan.refusals.size() == 1);
  CHECK(plan.refusals[0].job == 12);
  CHECK(plan.refusals[0].error.kind == ErrorKind::Invalid);
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].spec.name.text == "hpc-b");
}

TEST_CASE("plan_resume: decides nothing about a nodeset that could not be seen", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  FleetView fleet;
  fleet[0].error = Error{ErrorKind::Retry, "503"};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  CHECK(plan.groups.empty());
  REQUIRE(plan.refusals.size() == 1);
  CHECK(plan.refusals[0].error.kind == ErrorKind::Retry);
}

TEST_CASE("plan_resume: over 1,000 nodes in requests, over 2,000 in groups", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4500))});
  FleetView fleet;
  fleet[0].groups[{"hpc-a"}] = {};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4500), 4h)), fleet);
  REQUIRE(plan.groups.size() == 3);
  CHECK(plan.groups[0].spec.name.text == "hpc-a");
  CHECK(plan.groups[1].spec.name.text == "hpc-a-2");
  CHECK(plan.groups[2].spec.name.text == "hpc-a-3");
  std::set<NodeName> asked;
  std::set<RequestName> names;
  for (const auto& part : plan.groups) {
    std::size_t in_group = 0;
    for (const auto& one : part.requests) {
      CHECK(one.spec.nodes.size() <= 1000);
      in_group += one.spec.nodes.size();
      asked.insert(one.spec.nodes.begin(), one.spec.nodes.end());
      CHECK(names.insert(one.spec.name).second);
      CHECK(one.spec.description.size() < 2048);
    }
    CHECK(in_group <= 2000);
  }
  CHECK(asked.size() == 4500);
}

TEST_CASE("plan_resume: mig_scope job gives each job a group of its own", "[resume]") {
  auto set = nodeset("a", nodes("a", 8));
  set.mig_scope = MigScope::Job;
  const Config cfg = config({set});
  FleetView fleet;
  fleet[0] = {};
  Demand demand = for_job(job(12, nodes("a", 2), 4h));
  demand.jobs.push_back({.job = job(13, nodes("a", 2, 2), 1h), .nodes = nodes("a", 2, 2)});
  demand.jobless = {{"a-7"}};
  const auto plan = plan_resume(cfg, "hpc", demand, fleet);
  REQUIRE(plan.groups.size() == 3);
  CHECK(plan.groups[0].spec.name.text == "hpc-a");
  CHECK(plan.groups[1].spec.name.text == "hpc-a-j12");
  CHECK(plan.groups[1].spec.description == "slurm-flex-start cluster=hpc nodeset=a job=12");
  CHECK(plan.groups[2].spec.name.text == "hpc-a-j13");
}

TEST_CASE("plan_resume: mig_scope job sees a node's VM in another job's group", "[resume]") {
  auto set = nodeset("a", nodes("a", 8));
  set.mig_scope = MigScope::Job;
  const Config cfg = config({set});
  FleetView fleet;
  auto& other = fleet[0].groups[{"hpc-a-j11"}];
  other.group = group("hpc-a-j11", "hpc", "a");
  other.instances = {running({"a-0"}), deleting({"a-1"}), dead({"a-2"})};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 4), 4h)), fleet);
  CHECK(plan.left_alone == nodes("a", 1));
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].requests[0].spec.nodes == nodes("a", 3, 1));
  CHECK(plan.groups[0].requests[0].awaited.at({"hpc-a-j11"}) == nodes("a", 2, 1));
  CHECK(plan.groups[0].requests[0].dead.at({"hpc-a-j11"}).size() == 1);
}

TEST_CASE("plan_resume: nodes without a job get a request each, for the longest time", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 8))});
  Demand demand;
  demand.jobless = nodes("a", 3);
  const auto plan = plan_resume(cfg, "hpc", demand, empty_group("a"));
  REQUIRE(plan.groups.size() == 1);
  REQUIRE(plan.groups[0].requests.size() == 3);
  CHECK(plan.groups[0].requests[0].spec.run_duration == 604800s);
  CHECK_THAT(plan.groups[0].requests[0].spec.name.text, StartsWith("j0-"));
}

TEST_CASE("plan_resume: a job over two nodesets asks in both, a capped one is told", "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 8)), nodeset("b", nodes("b", 8))});
  auto fleet = empty_group("a");
  fleet[1] = empty_group("b", 1)[1];
  const auto wanted = job(12, {{"a-0"}, {"b-0"}}, 200h);
  const auto plan = plan_resume(cfg, "hpc", for_job(wanted), fleet);
  CHECK(plan.groups.size() == 2);
  REQUIRE_FALSE(plan.capped.empty());
  CHECK(plan.capped[0].job == 12);
  CHECK_THAT(plan.capped[0].note, ContainsSubstring("VMs live at most 7-00:00:00"));
}

TEST_CASE("plan_resume: a queued entry that its request has left behind is waited for",
          "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 4))});
  auto fleet = empty_group("a");
  auto& own = fleet[0].groups[{"hpc-a"}];
  own.instances = {queued({"a-0"}), queued({"a-1"})};
  own.requests = {request("j1-x", RequestState::Cancelled, nodes("a", 1)),
                  request("j2-x", RequestState::Succeeded, nodes("a", 1, 1))};
  const auto plan = plan_resume(cfg, "hpc", for_job(job(12, nodes("a", 2), 4h)), fleet);
  CHECK(plan.left_alone == nodes("a", 1, 1));
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].requests[0].spec.nodes == nodes("a", 1));
  CHECK(plan.groups[0].requests[0].awaited.at({"hpc-a"}) == nodes("a", 1));
}

// ---- a job is asked for as a whole ----

namespace {

ResizeRequest waiting_request(JobId id, const std::vector<NodeName>& of, Seconds run) {
  ResizeRequest made = request("j" + std::to_string(id) + "-x", RequestState::Accepted, of);
  made.description = request_description(id, of);
  made.run_duration = run;
  return made;
}

}  // namespace

TEST_CASE("plan_resume: the request of a job that is gone is given up for one that needs its nodes",
          "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 8))});
  FleetView fleet = empty_group("a");
  GroupView& home = fleet[0].groups[{"hpc-a"}];
  home.requests.push_back(waiting_request(7, nodes("a", 2), 4h + 15min));
  for (const NodeName& node : nodes("a", 2)) home.instances.push_back(queued(node));
  const Job wanted = job(8, nodes("a", 4), 4h);
  Demand demand = for_job(wanted);

  SECTION("it is cancelled, and one request is for all") {
    demand.living = {wanted};
    const auto plan = plan_resume(cfg, "hpc", demand, fleet);
    REQUIRE(plan.cancels.size() == 1);
    CHECK(plan.cancels[0].request.text == "j7-x");
    REQUIRE(plan.groups.size() == 1);
    REQUIRE(plan.groups[0].requests.size() == 1);
    CHECK(plan.groups[0].requests[0].spec.nodes == nodes("a", 4));
    CHECK(plan.groups[0].requests[0].awaited.size() == 1);
  }
  SECTION("not while its job lives and has the nodes, too") {
    demand.living = {wanted, job(7, nodes("a", 2), 4h)};
    const auto plan = plan_resume(cfg, "hpc", demand, fleet);
    CHECK(plan.cancels.empty());
    CHECK(plan.left_alone == nodes("a", 2));
  }
  SECTION("not where nobody knows the jobs") {
    CHECK(plan_resume(cfg, "hpc", demand, fleet).cancels.empty());
  }
  SECTION("what cannot be cancelled now is left to the sweeper, as a whole") {
    demand.living = {wanted};
    home.requests[0].state = RequestState::Creating;
    const auto plan = plan_resume(cfg, "hpc", demand, fleet);
    CHECK(plan.cancels.empty());
    CHECK(plan.groups.empty());
    REQUIRE(plan.refusals.size() == 1);
    CHECK(plan.refusals[0].error.kind == ErrorKind::Retry);
  }
  SECTION("exactly what is needed is inherited") {
    const Job same = job(8, nodes("a", 2), 4h);
    Demand heir = for_job(same);
    heir.living = {same};
    const auto plan = plan_resume(cfg, "hpc", heir, fleet);
    CHECK(plan.cancels.empty());
    CHECK(plan.groups.empty());
    CHECK(plan.left_alone == nodes("a", 2));
  }
}

TEST_CASE("plan_resume: a node that is up with a dead VM is nothing that a request must name",
          "[resume]") {
  const Config cfg = config({nodeset("a", nodes("a", 8))});
  FleetView fleet = empty_group("a");
  GroupView& home = fleet[0].groups[{"hpc-a"}];
  const std::vector<NodeName> asked{{"a-1"}, {"a-2"}};
  home.requests.push_back(waiting_request(8, asked, 4h + 15min));
  for (const NodeName& node : asked) home.instances.push_back(queued(node));
  const Job wanted = job(8, nodes("a", 3), 4h);
  Demand demand;
  demand.jobs.push_back({.job = wanted, .nodes = asked});
  demand.living = {wanted};
  // Without slurmctld's word a-0 would be missing.
  CHECK(plan_resume(cfg, "hpc", demand, fleet).cancels.size() == 1);
  std::vector<Node> states(1);
  states[0].name = {"a-0"};
  states[0].state = NODE_STATE_ALLOCATED | NODE_STATE_CLOUD;
  CHECK(others_of_jobs(cfg, demand) == std::vector<NodeName>{{"a-0"}});
  note_states(cfg, states, {{"a-0"}}, demand);
  CHECK(demand.jobs[0].nodes == asked);
  const auto plan = plan_resume(cfg, "hpc", demand, fleet);
  CHECK(plan.cancels.empty());
  CHECK(plan.left_alone == asked);
  // One that comes up is part of what the job lacks.
  states[0].state |= NODE_STATE_POWERING_UP;
  demand.not_coming.clear();
  note_states(cfg, states, {{"a-0"}}, demand);
  CHECK(demand.jobs[0].nodes == nodes("a", 3));
  CHECK(plan_resume(cfg, "hpc", demand, fleet).cancels.size() == 1);
}

TEST_CASE("rest_of_jobs: other nodes of the jobs, but not static or shared ones", "[resume]") {
  Config cfg = config({nodeset("a", nodes("a", 8))});
  cfg.places[{"a-5"}].is_static = true;
  const Job wanted = job(8, nodes("a", 6), 4h);
  Demand demand;
  demand.jobs.push_back({.job = wanted, .nodes = {{"a-2"}, {"a-3"}}});
  demand.living = {wanted, job(9, {{"a-4"}}, 4h)};
  CHECK(rest_of_jobs(cfg, demand) == std::vector<NodeName>{{"a-0"}, {"a-1"}});
  add_rest(demand, {{"a-1"}});
  CHECK(demand.jobs[0].nodes == std::vector<NodeName>{{"a-1"}, {"a-2"}, {"a-3"}});
}
