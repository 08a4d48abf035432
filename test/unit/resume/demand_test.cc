// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/demand.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

Config two_sets() {
  auto a = nodeset("a", nodes("a", 8));
  a.static_nodes = {{"a-7"}};
  return config({a, nodeset("b", nodes("b", 8))});
}

ResumeRequest file_with(JobId id, const std::vector<NodeName>& members) {
  ResumeRequest request;
  request.jobs.push_back({});
  request.jobs.back().id = id;
  request.jobs.back().nodes_alloc = members;
  request.jobs.back().nodes_resume = members;
  request.all_nodes = members;
  return request;
}

}  // namespace

TEST_CASE("resolve_demand: a job's nodes go to the job", "[resume]") {
  const Config cfg = two_sets();
  const auto wanted = nodes("a", 4);
  const std::vector<Job> jobs{job(5, wanted, 4h)};
  const auto file = file_with(5, wanted);
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = &file, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].job.id == 5);
  CHECK(demand.jobs[0].nodes == wanted);
  CHECK(demand.jobless.empty());
  CHECK(demand.unwanted.empty());
}

TEST_CASE("resolve_demand: only the nodes that slurmctld asks for, not all of the job's",
          "[resume]") {
  const Config cfg = two_sets();
  const std::vector<Job> jobs{job(5, nodes("a", 4), 4h)};
  const auto file = file_with(5, nodes("a", 2, 2));
  const auto demand =
      resolve_demand({.config = cfg, .nodes = file.all_nodes, .request = &file, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].nodes == nodes("a", 2, 2));
}

TEST_CASE("resolve_demand: a node of several jobs goes to the one that runs longest", "[resume]") {
  const Config cfg = two_sets();
  const std::vector<Job> jobs{job(5, {{"a-0"}, {"a-1"}}, 1h), job(6, {{"a-1"}, {"a-2"}}, 4h)};
  const auto wanted = nodes("a", 3);
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = nullptr, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 2);
  CHECK(demand.jobs[0].job.id == 6);
  CHECK(demand.jobs[0].nodes == nodes("a", 2, 1));
  CHECK(demand.jobs[1].job.id == 5);
  CHECK(demand.jobs[1].nodes == nodes("a", 1));
}

TEST_CASE("resolve_demand: a job without a limit outlives all others", "[resume]") {
  const Config cfg = two_sets();
  const std::vector<Job> jobs{job(5, nodes("a", 1), 100h), job(6, nodes("a", 1), std::nullopt)};
  const auto wanted = nodes("a", 1);
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = nullptr, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].job.id == 6);
}

TEST_CASE("resolve_demand: nodes of a job that vanished are unwanted, static ones are not",
          "[resume]") {
  const Config cfg = two_sets();
  const std::vector<NodeName> wanted{{"a-0"}, {"a-7"}};
  const auto file = file_with(5, wanted);
  const std::vector<Job> none;
  auto demand = resolve_demand({.config = cfg, .nodes = wanted, .request = &file, .jobs = &none});
  CHECK(demand.jobs.empty());
  CHECK(demand.unwanted == std::vector<NodeName>{{"a-0"}});
  CHECK(demand.jobless == std::vector<NodeName>{{"a-7"}});

  std::vector<Job> cancelled{job(5, wanted, 1h)};
  cancelled[0].is_finished = true;
  demand = resolve_demand({.config = cfg, .nodes = wanted, .request = &file, .jobs = &cancelled});
  CHECK(demand.jobs.empty());
  CHECK(demand.unwanted == std::vector<NodeName>{{"a-0"}});
}

TEST_CASE("resolve_demand: another job that took the vanished job's node gets it", "[resume]") {
  const Config cfg = two_sets();
  const auto wanted = nodes("a", 1);
  const auto file = file_with(5, wanted);
  const std::vector<Job> jobs{job(6, wanted, 1h)};
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = &file, .jobs = &jobs});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].job.id == 6);
  CHECK(demand.unwanted.empty());
}

TEST_CASE("resolve_demand: nodes without a job, and nodes that are not ours", "[resume]") {
  const Config cfg = two_sets();
  const std::vector<NodeName> wanted{{"a-0"}, {"zzz-1"}, {"b-3"}, {"a-0"}};
  const std::vector<Job> none;
  const ResumeRequest empty;
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = &empty, .jobs = &none});
  CHECK(demand.jobless == std::vector<NodeName>{{"a-0"}, {"b-3"}});
  CHECK(demand.foreign == std::vector<NodeName>{{"zzz-1"}});
}

TEST_CASE("resolve_demand: without slurmctld the file's jobs are taken as they are", "[resume]") {
  const Config cfg = two_sets();
  const auto wanted = nodes("b", 2);
  const auto file = file_with(9, wanted);
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = &file, .jobs = nullptr});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].job.id == 9);
  CHECK_FALSE(demand.jobs[0].job.time_limit);
}

TEST_CASE("covers: tells whether the named jobs explain all nodes", "[resume]") {
  const auto wanted = nodes("a", 2);
  const auto file = file_with(5, wanted);
  const std::vector<Job> live{job(5, wanted, 1h)};
  CHECK(covers(file, wanted, live));
  CHECK_FALSE(covers(file, nodes("a", 3), live));
  CHECK_FALSE(covers(file, wanted, {}));
  const std::vector<Job> other{job(6, wanted, 1h)};
  CHECK_FALSE(covers(file, wanted, other));
}

TEST_CASE("resolve_demand: without file and slurmctld all that is not static is asked for at once",
          "[resume]") {
  const Config cfg = two_sets();
  const std::vector<NodeName> wanted{{"a-0"}, {"a-1"}, {"a-7"}};
  const auto demand =
      resolve_demand({.config = cfg, .nodes = wanted, .request = nullptr, .jobs = nullptr});
  REQUIRE(demand.jobs.size() == 1);
  CHECK(demand.jobs[0].job.id == 0);
  CHECK(demand.jobs[0].nodes == nodes("a", 2));
  CHECK(demand.jobless == std::vector<NodeName>{{"a-7"}});
}
