// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/apply.h"

#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"

using namespace flex;
using namespace flex::test;

namespace {

struct World {
  Config cfg = config({nodeset("a", nodes("a", 8))});
  FakeCloud cloud{};

  World() { cloud.add_group("hpc-a", ownership_mark("hpc", "a")); }

  SuspendOutcome suspend(const std::vector<NodeName>& leaving) {
    const auto fleet = fetch_fleet(cloud, cfg, "hpc", leaving);
    return apply_suspend(cloud, plan_suspend(cfg, "hpc", leaving, fleet));
  }
};

}  // namespace

TEST_CASE("suspend: deletes VMs in one call and cancels exactly the queued request", "[suspend]") {
  World world;
  world.cloud.add_instance("hpc-a", "a-0");
  world.cloud.add_instance("hpc-a", "a-1");
  world.cloud.add_request("hpc-a", "j1-x", {"a-2", "a-3"});
  world.cloud.add_request("hpc-a", "j2-y", {"a-4", "a-5"});
  const auto outcome = world.suspend(nodes("a", 4));
  CHECK(outcome.failed.empty());
  CHECK(world.cloud.count("delete_instances") == 1);
  CHECK(world.cloud.count("cancel_request") == 1);
  CHECK(world.cloud.find_request("hpc-a", "j1-x")->state == RequestState::Cancelled);
  CHECK(world.cloud.find_request("hpc-a", "j2-y")->state == RequestState::Accepted);
}

TEST_CASE("suspend: a request that cannot be cancelled yet is looked at again", "[suspend]") {
  World world;
  world.cloud.add_request("hpc-a", "j1-x", {"a-2", "a-3"}, RequestState::Creating);
  const auto outcome = world.suspend(nodes("a", 2, 2));
  CHECK(outcome.failed.empty());
  CHECK(outcome.again == nodes("a", 2, 2));
}

TEST_CASE("suspend: what is not there is as it should be; a real failure is kept apart",
          "[suspend]") {
  World world;
  CHECK(world.suspend(nodes("a", 2)).failed.empty());
  world.cloud.add_instance("hpc-a", "a-0");
  world.cloud.next_error("delete_instances", {ErrorKind::NotFound, "gone"});
  CHECK(world.suspend(nodes("a", 1)).failed.empty());
  world.cloud.next_error("delete_instances", {ErrorKind::Retry, "503"});
  CHECK(world.suspend(nodes("a", 1)).failed.size() == 1);
}
