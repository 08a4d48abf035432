// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/admit.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

constexpr TimePoint kNoon{Seconds{1'800'000'000}};

std::vector<NodeName> names(const std::vector<std::string>& texts) {
  std::vector<NodeName> all;
  for (const std::string& text : texts) all.push_back({text});
  return all;
}

/// Nodesets a and b; requests are added one by one.
struct World {
  Config settings = config({nodeset("a", nodes("a", 8)), nodeset("b", nodes("b", 8))});
  Demand demand{};
  ResumePlan plan{};

  Job& wants(JobId id, const std::vector<std::string>& on) {
    demand.jobs.push_back({.job = job(id, names(on), std::chrono::hours{1}), .nodes = names(on)});
    return demand.jobs.back().job;
  }

  PlannedRequest& asks(const std::string& set,
                       JobId id,
                       const std::vector<std::string>& on,
                       const std::string& group_name = {}) {
    const std::string name = group_name.empty() ? "hpc-" + set : group_name;
    auto group = std::find_if(plan.groups.begin(), plan.groups.end(), [&](const GroupPlan& known) {
      return known.spec.name.text == name;
    });
    if (group == plan.groups.end()) {
      group = plan.groups.insert(group, GroupPlan{});
      group->spec.name = {name};
      group->nodeset = set;
    }
    PlannedRequest& request = group->requests.emplace_back();
    request.job = id;
    request.spec.nodes = names(on);
    request.spec.group = {name};
    request.spec.name = {"j" + std::to_string(id) + "-" + on.front()};
    return request;
  }

  std::vector<LeftAsk> admit(std::size_t most, std::size_t active = 0) {
    return admit_plan(
        settings, demand, {.region = "r", .most = most, .active = active}, kNoon, plan);
  }

  [[nodiscard]] std::vector<JobId> asked() const {
    std::vector<JobId> jobs;
    for (const GroupPlan& group : plan.groups) {
      for (const PlannedRequest& request : group.requests) jobs.push_back(request.job);
    }
    return jobs;
  }
};

using Jobs = std::vector<JobId>;

RequestOutcome outcome(const PlannedRequest& request, RequestResult result, Error error = {}) {
  return {.request = request, .result = result, .error = std::move(error)};
}

const Error kFull{ErrorKind::Quota, "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded.", "QUOTA_EXCEEDED"};

}  // namespace

TEST_CASE("admit: what is beyond the room is left, with groups only for it", "[resume]") {
  World world;
  for (JobId id = 1; id <= 3; ++id) {
    const std::string node = "a-" + std::to_string(id);
    world.wants(id, {node}).start_time = kNoon - Seconds{100 - id};
    world.asks("a", id, {node}, "hpc-a-" + node);
  }
  const auto left = world.admit(3, 1);
  REQUIRE(left.size() == 1);
  CHECK(left[0].job == 3);
  CHECK(left[0].nodes == names({"a-3"}));
  CHECK(left[0].why == "3 of 3 requests of region r are in use");
  CHECK(world.asked() == Jobs{1, 2});
  CHECK(world.plan.groups.size() == 2);
  CHECK(world.admit(3, 1).empty());
}

TEST_CASE("admit: VMs that come without a request need no room", "[resume]") {
  World world;
  world.wants(1, {"a-0"});
  world.asks("a", 1, {"a-0"});
  world.plan.groups[0].spec.kind = GroupKind::Individual;
  CHECK(world.admit(1, 1).empty());
  CHECK(world.asked() == Jobs{1});
}

TEST_CASE("admit: all requests of a job over two nodesets, or none", "[resume]") {
  World world;
  world.wants(1, {"a-0", "b-0"});
  world.asks("a", 1, {"a-0"});
  world.asks("b", 1, {"b-0"});
  const auto left = world.admit(2, 1);
  REQUIRE(left.size() == 1);
  CHECK(left[0].nodes == names({"a-0", "b-0"}));
  CHECK_THAT(left[0].why, ContainsSubstring("its 2 requests are asked for together"));
  CHECK(world.plan.groups.empty());
}

TEST_CASE("admit: the parts of a heterogeneous job are one", "[resume]") {
  World world;
  for (const JobId id : {JobId{5}, JobId{6}}) {
    const std::string node = "a-" + std::to_string(id);
    world.wants(id, {node}).het_job_id = 5;
    world.asks("a", id, {node});
  }
  const auto left = world.admit(2, 1);
  REQUIRE(left.size() == 1);
  CHECK(left[0].job == 5);
  CHECK(left[0].nodes == names({"a-5", "a-6"}));
  CHECK(world.asked().empty());
}

TEST_CASE("admit: nodes without a job are asked for one by one", "[resume]") {
  World world;
  world.asks("a", 0, {"a-0"});
  world.asks("a", 0, {"a-1"});
  CHECK(world.admit(2, 1).size() == 1);
  CHECK(world.asked() == Jobs{0});
}

TEST_CASE("admit: a part that the planner refused leaves all of the job", "[resume]") {
  World world;
  world.wants(1, {"a-0", "b-0"});
  world.wants(2, {"a-1"});
  world.asks("a", 1, {"a-0"});
  world.asks("a", 2, {"a-1"});
  world.plan.refusals.push_back(
      {.job = 1, .nodes = names({"b-0"}), .error = {ErrorKind::Retry, "not seen"}});
  const auto left = world.admit(9);
  REQUIRE(left.size() == 1);
  CHECK(left[0].why == "a part of it cannot be asked for now: not seen");
  CHECK(world.asked() == Jobs{2});
}

TEST_CASE("admit: max_nodes is kept before Google is asked", "[resume]") {
  World world;
  world.settings.nodesets[0].max_nodes = 4;
  world.wants(7, {"a-2", "a-3"});
  world.wants(8, {"a-4", "b-0"});
  world.wants(9, {"a-0", "a-1", "a-2", "a-3", "a-4"});
  world.asks("a", 7, {"a-2", "a-3"});
  world.asks("a", 8, {"a-4"});
  world.asks("b", 8, {"b-0"});
  world.asks("a", 9, {"a-0", "a-1", "a-2", "a-3", "a-4"});
  const std::set<NodeName> used{{"a-0"}, {"a-1"}};
  keep_to_max_nodes(world.settings,
                    world.demand,
                    {{0, {.name = "a", .max_nodes = 4, .used = used}}},
                    kNoon,
                    world.plan);
  CHECK(world.asked() == Jobs{7});
  REQUIRE(world.plan.refusals.size() == 2);
  // It never fits: the job is given back.
  CHECK(world.plan.refusals[0].job == 9);
  CHECK(world.plan.refusals[0].error.kind == ErrorKind::Invalid);
  // All of the job waits, also what is in the other nodeset.
  CHECK(world.plan.refusals[1].job == 8);
  CHECK(world.plan.refusals[1].nodes == names({"a-4", "b-0"}));
  CHECK(world.plan.refusals[1].error.kind == ErrorKind::Quota);
  CHECK(world.plan.refusals[1].error.code == "MAX_NODES");
}

TEST_CASE("admit: what needs room in a nodeset can be left as a whole", "[resume]") {
  World world;
  world.settings.nodesets[0].max_nodes = 4;
  world.wants(7, {"a-2", "b-1"});
  world.wants(8, {"b-0"});
  world.asks("a", 7, {"a-2"});
  world.asks("b", 7, {"b-1"});
  world.asks("b", 8, {"b-0"});
  CHECK(limited_nodes(world.settings, world.plan) == names({"a-2"}));
  const auto left = leave_limited(world.settings, world.demand, "why", world.plan);
  REQUIRE(left.size() == 1);
  CHECK(left[0].nodes == names({"a-2", "b-1"}));
  CHECK(world.asked() == Jobs{8});
  CHECK(limited_nodes(world.settings, world.plan).empty());
}

TEST_CASE("admit: a nodeset that is paused is left out with the rest of its jobs", "[resume]") {
  World world;
  world.wants(1, {"a-0", "b-0"});
  world.wants(2, {"b-1"});
  world.asks("a", 1, {"a-0"});
  world.asks("b", 1, {"b-0"});
  world.asks("b", 2, {"b-1"});
  CHECK(leave_nodeset(world.demand, "a", world.plan) == names({"a-0", "b-0"}));
  CHECK(world.asked() == Jobs{2});
  CHECK(leave_nodeset(world.demand, "a", world.plan).empty());
}

TEST_CASE("admit: a part that was taken goes back where the rest was refused for room",
          "[resume]") {
  World world;
  world.wants(1, {"a-0", "b-0"});
  world.wants(2, {"a-1"});
  const PlannedRequest first = world.asks("a", 1, {"a-0"});
  const PlannedRequest second = world.asks("b", 1, {"b-0"});
  const PlannedRequest other = world.asks("a", 2, {"a-1"});
  const auto parts = find_parts(world.demand,
                                {outcome(first, RequestResult::Requested),
                                 outcome(second, RequestResult::Failed, kFull),
                                 outcome(other, RequestResult::Requested)});
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].request == first.spec.name);
  CHECK(parts[0].group.text == "hpc-a");
  CHECK_THAT(parts[0].why, ContainsSubstring("ACTIVE_RESIZE_REQUESTS"));
  // Passing trouble is asked again; a lane of a race is one of several ways.
  CHECK(find_parts(world.demand,
                   {outcome(first, RequestResult::Requested),
                    outcome(second, RequestResult::Failed, {ErrorKind::Retry, "503"})})
            .empty());
  const PlannedRequest lane = world.asks("a", 1, {"a-0"}, "hpc-a-zb");
  CHECK(find_parts(
            world.demand,
            {outcome(first, RequestResult::Requested), outcome(lane, RequestResult::Failed, kFull)})
            .empty());
}

TEST_CASE("admit: what others have to know of the answers", "[resume]") {
  World world;
  const PlannedRequest first = world.asks("a", 1, {"a-0", "a-1"});
  const PlannedRequest second = world.asks("a", 2, {"a-2"});
  const PlannedRequest third = world.asks("a", 3, {"a-3"});
  const PlannedRequest lane = world.asks("a", 1, {"a-0", "a-1"}, "hpc-a-zb");
  const auto answers =
      answers_of({outcome(first, RequestResult::Failed, kFull),
                  outcome(second, RequestResult::Failed, {ErrorKind::Retry, "lost"}),
                  outcome(third, RequestResult::Failed, kFull),
                  outcome(lane, RequestResult::Existing)});
  CHECK(answers.refused == std::set<NodeName>{{"a-3"}});
  CHECK(answers.unknown == std::set<NodeName>{{"a-2"}});
}
