// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/node_use.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config settings = config({nodeset("a", nodes("a", 8)), nodeset("b", nodes("b", 8))});
  FleetView fleet{};

  World() {
    settings.nodesets[0].max_nodes = 4;
    fleet[0];
    fleet[1];
  }

  GroupView& owned(const std::string& name) {
    GroupView& made = fleet[0].groups[{name}];
    made.group = group(name, "hpc", "a");
    return made;
  }

  std::set<NodeName> used() { return nodes_in_use(fleet[0], "hpc", "a"); }
};

}  // namespace

TEST_CASE("node use: VMs, entries and active requests, each node once", "[provision]") {
  World world;
  GroupView& own = world.owned("hpc-a");
  own.instances = {running({"a-0"}), queued({"a-1"})};
  own.requests = {request("r1", RequestState::Accepted, nodes("a", 2, 1)),
                  request("r2", RequestState::Failed, nodes("a", 2, 5)),
                  request("r3", RequestState::Succeeded, nodes("a", 1))};
  world.owned("hpc-a-s1").requests = {request("r4", RequestState::Creating, nodes("a", 1, 2))};
  CHECK(world.used() == std::set<NodeName>{{"a-0"}, {"a-1"}, {"a-2"}});
}

TEST_CASE("node use: somebody else's group does not count", "[provision]") {
  World world;
  world.owned("hpc-a").instances = {running({"a-0"})};
  world.owned("hpc-a").group->description = "mine";
  CHECK(world.used().empty());
}

TEST_CASE("node use: a group that was not looked into counts with its size", "[provision]") {
  World world;
  GroupView& far = world.owned("hpc-a-2");
  far.is_read = false;
  far.group->target_size = 3;
  CHECK(world.used().size() == 3);
}

TEST_CASE("node use: the room of nodesets that have max_nodes", "[provision]") {
  World world;
  world.settings.nodesets[0].static_nodes = nodes("a", 1);
  world.owned("hpc-a").instances = {running({"a-0"})};
  QueueFile queue;
  queue.nodesets = {{"a", 2}, {"b", 1}};
  const auto rooms = find_room({.config = world.settings,
                                .cluster = "hpc",
                                .fleet = world.fleet,
                                .asked = {{"a-5"}, {"b-0"}, {"x-0"}},
                                .queue = queue});
  REQUIRE(rooms.size() == 1);
  const NodesetRoom& room = rooms.at(0);
  CHECK(room.name == "a");
  CHECK(room.max_nodes == 4);
  CHECK(room.used == std::set<NodeName>{{"a-0"}, {"a-5"}});
  CHECK(room.kept == std::set<NodeName>{{"a-0"}});
  CHECK(room.waiting == 2);
}

TEST_CASE("node use: only active requests count for the quota", "[provision]") {
  FleetView fleet;
  fleet[0].groups[{"a"}].requests = {request("r1", RequestState::Accepted, {}),
                                     request("r2", RequestState::Failed, {}),
                                     request("r3", RequestState::Creating, {})};
  fleet[1].groups[{"b"}].requests = {request("r4", RequestState::Accepted, {})};
  CHECK(count_active_requests(fleet) == 3);
}
