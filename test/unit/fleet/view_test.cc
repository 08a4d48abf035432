// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/view.h"

#include "lib/core/names.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  FakeCloud cloud{};
  Config settings = config({nodeset("a", nodes("a", 2)), nodeset("b", nodes("b", 2))});

  FleetView look() { return fetch_fleet(cloud, settings, "hpc", nodes("a", 2)); }
};

}  // namespace

TEST_CASE("fetch_fleet: one wave of three calls for a nodeset's own group", "[fleet]") {
  World world;
  world.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  const FleetView fleet = world.look();
  CHECK(world.cloud.calls.size() == 3);
  CHECK(fleet.at(0).groups.at({"hpc-a"}).group);
}

TEST_CASE("fetch_fleet: other groups of the nodeset that have something in them count, too",
          "[fleet]") {
  World world;
  world.cloud.add_group("hpc-a-zb", ownership_mark("hpc", "a")).group.target_size = 1;
  world.cloud.add_instance("hpc-a-zb", "a-0");
  world.cloud.add_group("hpc-a-s1", ownership_mark("hpc", "a"));
  world.cloud.add_group("hpc-a-x", "by hand").group.target_size = 1;
  const FleetView fleet = world.look();
  CHECK(fleet.at(0).groups.at({"hpc-a-zb"}).instances.size() == 1);
  CHECK(world.cloud.count("fetch_instances") == 2);
}

TEST_CASE("fetch_fleet: of a big nodeset's other groups only the size is known", "[fleet]") {
  World world;
  world.settings = config({nodeset("a", nodes("a", 4001))});
  world.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  world.cloud.add_instance("hpc-a", "a-0");
  world.cloud.add_group("hpc-a-2", ownership_mark("hpc", "a"));
  world.cloud.add_instance("hpc-a-2", "a-3000");
  const FleetView fleet = world.look();
  CHECK(fleet.at(0).groups.at({"hpc-a"}).is_read);
  CHECK_FALSE(fleet.at(0).groups.at({"hpc-a-2"}).is_read);
}

TEST_CASE("fetch_fleet: a group that is made while it is looked at is seen whole", "[fleet]") {
  World world;
  world.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  world.cloud.add_request("hpc-a", "j7-x", {"a-0"});
  // Not yet in the list.
  world.cloud.groups.at("hpc-a").group.name = {"elsewhere"};
  const FleetView fleet = world.look();
  CHECK(world.cloud.count("fetch_group") == 1);
  CHECK(fleet.at(0).groups.at({"hpc-a"}).group);
}

TEST_CASE("fetch_fleet: VMs that are in no group are their nodeset's", "[fleet]") {
  World world;
  world.settings.nodesets[0].mode = Mode::BulkInsert;
  world.cloud.add_loose("a-0", ownership_mark("hpc", "a") + " job=7");
  world.cloud.add_loose("b-0", ownership_mark("hpc", "b"));
  const FleetView fleet = world.look();
  const GroupView& loose = fleet.at(0).groups.at({});
  REQUIRE(loose.instances.size() == 1);
  CHECK(loose.group->kind == GroupKind::Loose);
  world.cloud.next_error("fetch_loose_instances", {ErrorKind::Retry, "away"});
  CHECK(world.look().at(0).error);
}

namespace {

/// A nodeset with a group for each job, of which each has a VM of its own.
struct Jobs {
  FakeCloud cloud{};
  Config settings = config({nodeset("a", nodes("a", 40))});

  Jobs() {
    settings.nodesets[0].mig_scope = MigScope::Job;
    settings.nodesets[0].zones = {"test-region1-a"};
    for (int i = 0; i < 30; ++i) {
      add(i);
      cloud.add_instance(name_of(i), "a-" + std::to_string(i));
    }
  }

  static std::string name_of(int job) { return "hpc-a-j" + std::to_string(job + 100); }

  void add(int job) {
    cloud.add_group(name_of(job), ownership_mark("hpc", "a") + " job=" + std::to_string(job + 100));
  }

  std::vector<JobId> asked{};

  NodesetView look(const std::string& node, std::vector<JobId> jobs = {}) {
    cloud.calls.clear();
    const std::vector<NodeName> wanted{{node}};
    const auto ask = [&](const std::vector<JobId>& owners) {
      asked = owners;
      return jobs;
    };
    return fetch_fleet(cloud, settings, "hpc", wanted, ask).at(0);
  }
};

}  // namespace

TEST_CASE("fetch_fleet: of many jobs' groups the one that has made the VM is read", "[fleet]") {
  Jobs world;
  const NodesetView view = world.look("a-7");
  CHECK(world.cloud.calls.size() == 4);
  CHECK(view.groups.at({Jobs::name_of(7)}).instances.size() == 1);
  CHECK(view.groups.at({Jobs::name_of(7)}).is_read);
  CHECK_FALSE(view.groups.at({Jobs::name_of(8)}).is_read);
  CHECK(view.groups.size() == 30);
}

TEST_CASE("fetch_fleet: a queued node is found in its job's group", "[fleet]") {
  Jobs world;
  world.add(35);
  world.cloud.add_request(Jobs::name_of(35), "j135-x", {"a-35"});
  const NodesetView view = world.look("a-35", {135});
  CHECK(view.groups.at({Jobs::name_of(35)}).requests.size() == 1);
  CHECK(world.cloud.calls.size() == 4);
  CHECK(world.asked.size() == 31);
  // Whose it is, nobody knows: it is not looked for everywhere.
  CHECK_FALSE(world.look("a-35").groups.at({Jobs::name_of(35)}).is_read);
}

TEST_CASE("fetch_fleet: without zones in the config, all of the region are listed", "[fleet]") {
  Jobs world;
  world.settings.nodesets[0].zones.clear();
  const NodesetView view = world.look("a-7");
  CHECK(view.groups.at({Jobs::name_of(7)}).instances.size() == 1);
  CHECK_FALSE(view.groups.at({Jobs::name_of(8)}).is_read);
  CHECK(world.cloud.count("fetch_vms") == 1);
  CHECK(world.cloud.count("fetch_instances") == 1);
}

TEST_CASE("fetch_fleet: few jobs' groups are all read", "[fleet]") {
  Jobs few;
  while (few.cloud.groups.size() > 2) few.cloud.groups.erase(few.cloud.groups.begin());
  few.look("a-7");
  CHECK(few.cloud.count("fetch_instances") == 2);
  CHECK(few.cloud.count("fetch_vms") == 0);
}

TEST_CASE("fetch_fleet: without the list of VMs nothing is known of the nodeset", "[fleet]") {
  Jobs world;
  world.cloud.next_error("fetch_vms", {ErrorKind::Retry, "away"});
  CHECK(world.look("a-7").error);
}

TEST_CASE("jobs_of_nodes: those that have, or had, one of them", "[fleet]") {
  const std::vector<Job> jobs{job(1, nodes("a", 2), Seconds{60}),
                              job(2, nodes("b", 2), Seconds{60})};
  CHECK(jobs_of_nodes(jobs, nodes("a", 1)) == std::vector<JobId>{1});
  CHECK(jobs_of_nodes(jobs, nodes("c", 1)).empty());
}

TEST_CASE("jobs_to_look_at: also what is left of jobs that are gone, but not of all", "[fleet]") {
  std::vector<Job> jobs{job(1, nodes("a", 2), Seconds{60}), job(2, nodes("b", 2), Seconds{60})};
  CHECK(jobs_to_look_at(jobs, nodes("a", 1), {1, 2, 3}) == std::vector<JobId>{1, 3});
  // Requeued: it has no nodes now.
  jobs[1].is_running = false;
  jobs[1].is_pending = true;
  CHECK(jobs_to_look_at(jobs, nodes("a", 1), {1, 2, 3}) == std::vector<JobId>{1, 3, 2});
  std::vector<JobId> many;
  for (JobId id = 100; id < 200; ++id) many.push_back(id);
  const auto some = jobs_to_look_at(jobs, nodes("a", 1), many);
  CHECK(some.size() == 11);
  CHECK(some.at(1) == 199);
}
