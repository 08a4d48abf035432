// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/observe.h"

#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"

using namespace flex;
using namespace flex::test;

namespace {

struct Look {
  FakeCloud cloud{};
  FakeScheduler slurm{};
  Config settings = config({nodeset("a", nodes("a", 2))});
  Snapshot shot{};

  Look() {
    shot.cluster = "hpc";
    slurm.add_node("a-0");
    slurm.settings.version = "24.11.5";
  }

  Result<Done> look() { return observe(cloud, slurm, settings, TimePoint{Seconds{1000}}, shot); }
};

}  // namespace

TEST_CASE(
    "observe: a group is ours if its mark and its name say so, and is only then looked into") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.add_group("hpc-old", ownership_mark("hpc", "old"));
  look.cloud.add_group("hpc-b", "by hand");
  look.cloud.add_group("hpc-x-a", ownership_mark("hpc-x", "a"));
  look.cloud.add_group("hpc-y", ownership_mark("hpc", "z"));
  look.cloud.add_group("other-a", ownership_mark("hpc", "a"));
  REQUIRE(look.look());
  REQUIRE(look.shot.groups.size() == 2);
  CHECK(look.shot.groups[0].nodeset == "a");
  CHECK(look.shot.groups[1].nodeset == "old");
  CHECK(look.shot.foreign_groups.size() == 3);
  CHECK(look.cloud.count("fetch_instances") == 2);
}

TEST_CASE("observe: what only some nodesets need is looked at in the first round, and by them") {
  Look look;
  look.slurm.add_node("a-0");
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  REQUIRE(look.look());
  CHECK(look.cloud.calls.size() == 6);
  look.cloud.calls.clear();
  REQUIRE(look.look());
  CHECK(look.cloud.calls.size() == 3);
  look.settings.nodesets[0].mode = Mode::BulkInsert;
  look.settings.nodesets[0].placement.max_distance = 2;
  look.cloud.calls.clear();
  REQUIRE(look.look());
  CHECK(look.cloud.count("fetch_loose_instances") == 1);
  CHECK(look.cloud.count("fetch_bulk_operations") == 1);
  CHECK(look.cloud.count("fetch_policies") == 1);
  CHECK(look.cloud.calls.size() == 6);
}

TEST_CASE("observe: any list that fails makes the view incomplete") {
  for (const char* method : {"fetch_groups",
                             "fetch_requests",
                             "fetch_instances",
                             "fetch_bulk_operations",
                             "fetch_loose_instances",
                             "fetch_policies"}) {
    Look look;
    look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
    look.cloud.next_error(method, {ErrorKind::Retry, "away"});
    CHECK_FALSE(look.look());
  }
  for (const char* method :
       {"refresh_nodes", "refresh_jobs", "refresh_partitions", "refresh_reservations"}) {
    Look look;
    look.slurm.fail_next(method, {ErrorKind::Retry, "away"});
    CHECK_FALSE(look.look());
  }
}

TEST_CASE("observe: a group gone in between is not there; with one list only nothing is known") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.next_error("fetch_requests", {ErrorKind::NotFound, "gone"});
  CHECK_FALSE(look.look());
  look.cloud.next_error("fetch_requests", {ErrorKind::NotFound, "gone"});
  look.cloud.next_error("fetch_instances", {ErrorKind::NotFound, "gone"});
  REQUIRE(look.look());
  CHECK(look.shot.groups.empty());
}

TEST_CASE("observe: a slurmctld that shows no nodes is not believed") {
  Look look;
  look.slurm.nodes.clear();
  CHECK_FALSE(look.look());
}

TEST_CASE("observe: a role that does not allow what nobody needs is no obstacle") {
  for (const char* method : {"fetch_bulk_operations", "fetch_loose_instances", "fetch_policies"}) {
    Look look;
    look.cloud.next_error(method, {ErrorKind::Denied, "no"});
    CHECK(look.look());
    Look needs;
    needs.settings.nodesets[0].mode = Mode::BulkInsert;
    needs.settings.nodesets[0].placement.max_distance = 2;
    needs.cloud.next_error(method, {ErrorKind::Denied, "no"});
    CHECK_FALSE(needs.look());
  }
}

TEST_CASE("observe: says what it is reading") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.add_group("hpc-old", ownership_mark("hpc", "old"));
  std::vector<std::string> told;
  const Progress progress = [&told](const std::string& doing) { told.push_back(doing); };
  REQUIRE(observe(
      look.cloud, look.slurm, look.settings, TimePoint{Seconds{1000}}, look.shot, progress));
  CHECK(told == std::vector<std::string>{"the list of groups at Compute Engine",
                                         "groups at Compute Engine: 1 of 2",
                                         "groups at Compute Engine: 2 of 2",
                                         "nodes at slurmctld",
                                         "jobs at slurmctld (1 nodes)",
                                         "reservations and partitions at slurmctld (0 jobs)"});
}
