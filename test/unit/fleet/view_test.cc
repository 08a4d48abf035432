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
