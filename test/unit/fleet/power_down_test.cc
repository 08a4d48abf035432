// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/power_down.h"

#include "lib/fleet/drain.h"
#include "lib/fleet/node_extra.h"
#include "lib/slurm/node_state.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_scheduler.h"

#include <slurm/slurm.h>

#include <string>
#include <vector>

using namespace flex;
using namespace flex::test;

namespace {

constexpr std::uint32_t kComing =
    NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERING_UP | NODE_STATE_NO_RESPOND;
constexpr std::uint32_t kWaking = kComing | NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP;
constexpr std::uint32_t kIdle = NODE_STATE_IDLE | NODE_STATE_CLOUD;
const std::string kFan = "fan (bay 3), \"ask\" 100% of ann\\bob ü ";

struct World {
  Config settings = config({nodeset("a", nodes("a", 8))});
  FakeScheduler scheduler{};

  Node& add(const std::string& name, std::uint32_t state, const std::string& reason = {}) {
    Node& node = scheduler.add_node(name, state);
    node.reason = reason;
    return node;
  }

  TakenDown take(std::vector<NodeName> names,
                 NodeRequest request = NodeRequest::PowerDownForce,
                 bool only_free = false) {
    return take_down(scheduler,
                     settings,
                     {.request = request,
                      .nodes = std::move(names),
                      .reason = "flex: why",
                      .only_free = only_free});
  }
};

}  // namespace

TEST_CASE("take down: a node that slurmctld is about to wake waits", "[power_down]") {
  World world;
  world.add("a-0", kWaking);
  world.add("a-1", kComing);
  const TakenDown taken = world.take(nodes("a", 2));
  CHECK(taken.result);
  CHECK(taken.waking == nodes("a", 1));
  CHECK(taken.done == nodes("a", 1, 1));
  REQUIRE(world.scheduler.updates.size() == 1);
  CHECK(world.scheduler.updates[0].nodes == nodes("a", 1, 1));
}

TEST_CASE("take down: a POWER_UP flag that a restart left on an up node means nothing",
          "[power_down]") {
  World world;
  world.add("a-0", kIdle | NODE_STATE_POWER_UP);
  // DOWN powers nothing down.
  world.add("a-1", kWaking);
  CHECK(world.take(nodes("a", 1)).waking.empty());
  CHECK(world.take(nodes("a", 1, 1), NodeRequest::Down).waking.empty());
}

TEST_CASE("take down: an admin's drain is noted in the same call, and the reason stays",
          "[power_down]") {
  World world;
  world.add("a-0", kComing | NODE_STATE_DRAIN, kFan).extra = "rack=7";
  world.add("a-1", kComing, "old");
  CHECK(world.take(nodes("a", 2)).done.size() == 2);
  const Node& drained = *world.scheduler.find_node("a-0");
  CHECK(!is_draining(drained));
  CHECK(drained.reason == kFan);
  CHECK(drained.extra.starts_with("rack=7 "));
  CHECK(drain_note(drained.extra) == kFan);
  CHECK(world.scheduler.find_node("a-1")->reason == "flex: why");
  CHECK(world.scheduler.find_node("a-1")->extra.empty());

  REQUIRE(drain_nodes(world.scheduler, nodes("a", 1), kFan));
  CHECK(is_draining(drained));
  CHECK(drained.extra.starts_with("rack=7 "));
  CHECK(drain_note(drained.extra) == kFan);
}

TEST_CASE("drain: what outlives a power-down is noted in the same call", "[power_down]") {
  World world;
  world.add("a-0", kIdle).extra = "rack=7";
  world.add("a-1", kIdle);
  REQUIRE(drain_nodes(world.scheduler, nodes("a", 2), "flex: gave up after 3 repairs: Xid 79"));
  CHECK(world.scheduler.updates.size() == 2);
  CHECK(drain_note(world.scheduler.find_node("a-0")->extra) ==
        "flex: gave up after 3 repairs: Xid 79");
  REQUIRE(drain_nodes(world.scheduler, nodes("a", 2), "flex: nodeset a stopped: paused by ann"));
  CHECK(world.scheduler.updates.size() == 3);
  CHECK(drain_note(world.scheduler.find_node("a-1")->extra) ==
        "flex: gave up after 3 repairs: Xid 79");
}

TEST_CASE("take down: an admin's DOWN is noted, and slurmctld's words do not hide the reason",
          "[power_down]") {
  World world;
  world.add("a-0", NODE_STATE_DOWN | NODE_STATE_CLOUD, kFan);
  world.add("a-1", NODE_STATE_DOWN | NODE_STATE_CLOUD, "Not responding");
  world.add("a-2", NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_DRAIN, "Not responding").extra =
      with_drain_note("", kFan);
  CHECK(world.take(nodes("a", 3)).done.size() == 3);
  CHECK(drain_note(world.scheduler.find_node("a-0")->extra) == kFan);
  CHECK(world.scheduler.find_node("a-0")->reason == kFan);
  CHECK(world.scheduler.find_node("a-1")->extra.empty());
  CHECK(drain_note(world.scheduler.find_node("a-2")->extra) == kFan);
}

TEST_CASE("take down: a reason that a power-up has taken from a DOWN node is written again",
          "[power_down]") {
  World world;
  constexpr auto kIdleBits = static_cast<std::uint32_t>(NODE_STATE_IDLE);
  constexpr std::uint32_t kDownAndComing = NODE_STATE_DOWN | (kComing & ~kIdleBits);
  Node& node = world.add("a-0", kDownAndComing);
  node.extra = with_drain_note({}, kFan);
  const NodesetConfig& set = world.settings.nodesets[0];
  // An admin's RESUME would have ended the DOWN.
  CHECK(care_for_drain(set, node, kFan, LastLook::Nothing) == DrainCare::Restore);
  CHECK(care_for_drain(set, node, std::nullopt, LastLook::Nothing) == DrainCare::Nothing);
  Node going = node;
  going.state |= NODE_STATE_POWER_DOWN;
  CHECK(care_for_drain(set, going, kFan, LastLook::Nothing) == DrainCare::Nothing);
  Node back = node;
  back.state = kComing;
  CHECK(care_for_drain(set, back, kFan, LastLook::Nothing) == DrainCare::Forget);

  REQUIRE(world.take(nodes("a", 1)).done.size() == 1);
  CHECK(world.scheduler.find_node("a-0")->reason == kFan);
  CHECK(drain_note(world.scheduler.find_node("a-0")->extra) == kFan);
}

TEST_CASE("take down: DOWN says that it was us; the note keeps the admin's reason",
          "[power_down]") {
  World world;
  world.add("a-0", kIdle | NODE_STATE_DRAIN, kFan);
  CHECK(world.take(nodes("a", 1), NodeRequest::Down).done.size() == 1);
  CHECK(world.take(nodes("a", 1), NodeRequest::PowerDown).done.size() == 1);
  const Node& node = *world.scheduler.find_node("a-0");
  CHECK(node.reason == "flex: why");
  CHECK(drain_note(node.extra) == kFan);
}

TEST_CASE("take down: what a job has got is left alone where only free nodes are meant",
          "[power_down]") {
  World world;
  world.add("a-0", NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERING_UP);
  CHECK(world.take(nodes("a", 1), NodeRequest::PowerDownForce, true).done.empty());
  CHECK(world.take(nodes("a", 1)).done.size() == 1);
}

TEST_CASE("take down: slurmctld's error is told, and nothing is sent unseen", "[power_down]") {
  World world;
  world.add("a-0", kComing);
  world.scheduler.fail_next("load_nodes", {ErrorKind::Retry, "away"});
  CHECK(!world.take(nodes("a", 1)).result);
  CHECK(world.scheduler.updates.empty());
}

TEST_CASE("take down patiently: gives up in time", "[power_down]") {
  World world;
  world.add("a-0", kWaking);
  const TakenDown taken = take_down_patiently(
      world.scheduler, world.settings, {.nodes = nodes("a", 1)}, std::chrono::milliseconds{300});
  CHECK(taken.waking == nodes("a", 1));
  CHECK(world.scheduler.updates.empty());
}

TEST_CASE("drains: which are kept, and which the next VM mends", "[power_down]") {
  NodesetConfig set = nodeset("a", nodes("a", 1));
  set.max_repairs = 2;
  set.repair_reasons = {"xid"};
  const auto is_kept = [&](std::uint64_t state, const std::string& reason) {
    Node node;
    node.state = static_cast<std::uint32_t>(state);
    node.reason = reason;
    return is_set_aside(set, node);
  };
  CHECK(is_kept(kIdle | NODE_STATE_DRAIN, "ann looks at it"));
  CHECK(is_kept(kIdle | NODE_STATE_DRAIN, "flex: gave up after 3 repairs: Xid 79"));
  CHECK_FALSE(is_kept(kIdle, "ann looks at it"));
  CHECK_FALSE(is_kept(kIdle | NODE_STATE_DRAIN, "Xid 79"));
  CHECK_FALSE(is_kept(kIdle | NODE_STATE_DRAIN, "flex: nodeset a stopped: paused by ann"));
  CHECK_FALSE(is_kept(kIdle | NODE_STATE_DRAIN | NODE_STATE_INVALID_REG, "Low RealMemory"));
  CHECK_FALSE(is_kept(kIdle | NODE_STATE_DRAIN, "POWER_DOWN_ASAP"));
  CHECK_FALSE(is_kept(kIdle | NODE_STATE_DRAIN | NODE_STATE_REBOOT_REQUESTED, "Reboot ASAP"));
  CHECK(is_kept(kIdle | NODE_STATE_DRAIN, "POWER_DOWN_ASAP, says ann"));
  CHECK(is_kept(kIdle | NODE_STATE_DRAIN, "ann looks at it : Not responding"));
  constexpr std::uint64_t kDown = NODE_STATE_DOWN | NODE_STATE_CLOUD;
  CHECK(is_kept(kDown, "ann looks at it"));
  for (const char* reason : {"Not responding",
                             "ResumeTimeout reached",
                             "old : Not responding",
                             "Node unexpectedly rebooted",
                             "reboot timed out",
                             "flex: its VM is gone",
                             "flex: gave up after 3 repairs: Xid 79",
                             "Xid 79",
                             ""})
    CHECK_FALSE(is_kept(kDown, reason));
}

TEST_CASE("drain note: beside a lease, in JSON, and away again", "[power_down]") {
  const std::string lease = "flex(end=1763310900,nodeset=a)";
  for (const std::string& before :
       std::vector<std::string>{{}, lease, "x " + lease, R"({"a":1})"}) {
    const std::string with = with_drain_note(before, kFan);
    CAPTURE(before, with);
    CHECK(drain_note(with) == kFan);
    CHECK(with_drain_note(with, "") == with);
    CHECK(drain_note(with_drain_note(with, "another")) == "another");
    CHECK(read_lease(with) == read_lease(before));
    CHECK(without_drain_note(with) == before);
    CHECK(drain_note(with_lease(with, std::nullopt)) == kFan);
  }
  CHECK(!drain_note("flex(end=7)"));
}

TEST_CASE("drain note: another tool has moved it into JSON of its own", "[power_down]") {
  const auto without = [](const std::string& extra) {
    CHECK(drain_note(extra) == "fan");
    return without_drain_note(extra);
  };
  CHECK(without(R"x({"site":"rack 7 flex(drained=fan)","a":1})x") == R"({"site":"rack 7","a":1})");
  CHECK(without(R"x({"extra":"flex(drained=fan)"})x") == R"({"extra":""})");
  CHECK(without(R"x({"o":{"flex_drained":"flex(drained=fan)"}})x") == R"({"o":{}})");
  CHECK(with_lease(R"x({"site":"flex(end=7,nodeset=a)"})x", std::nullopt) == R"({"site":""})");
}

TEST_CASE("unusable: idle and off, and slurmctld waits for an answer", "[power_down]") {
  constexpr std::uint64_t kOff = NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
  const auto is = [](std::uint64_t state) {
    Node node;
    node.state = static_cast<std::uint32_t>(state);
    return is_unusable(node);
  };
  CHECK(is(kOff | NODE_STATE_NO_RESPOND));
  CHECK_FALSE(is(kOff));
  CHECK_FALSE(is(kOff | NODE_STATE_NO_RESPOND | NODE_STATE_DRAIN));
  CHECK_FALSE(is(kOff | NODE_STATE_NO_RESPOND | NODE_STATE_POWER_UP));
  CHECK_FALSE(is(kWaking));
  CHECK_FALSE(is(NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN |
                 NODE_STATE_NO_RESPOND));
}

TEST_CASE("undrain: a node that is off becomes IDLE, for UNDRAIN would make it unusable",
          "[power_down]") {
  constexpr std::uint32_t kOff = NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
  World world;
  world.add("a-0", kOff | NODE_STATE_DRAIN, "x");
  world.add("a-1", kIdle | NODE_STATE_DRAIN, "x");
  REQUIRE(undrain_nodes(world.scheduler, nodes("a", 2)));
  REQUIRE(world.scheduler.updates.size() == 2);
  CHECK(world.scheduler.updates[0].what == "node IDLE");
  CHECK(world.scheduler.updates[0].nodes == nodes("a", 1));
  CHECK(world.scheduler.updates[1].what == "node UNDRAIN");
  CHECK(world.scheduler.updates[1].nodes == nodes("a", 1, 1));
}
