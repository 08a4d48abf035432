// SPDX-License-Identifier: GPL-2.0-or-later
// Power flags and drains: for whom a node comes up, drains that are put back, nodes that were
// undrained while off.
#include "lib/fleet/node_extra.h"
#include "lib/fleet/pause.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

constexpr std::uint32_t kWaking = kComing | NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP;
constexpr std::uint32_t kUnusable = kOff | NODE_STATE_NO_RESPOND;

}  // namespace

// ---- for whom a node comes up ----

TEST_CASE("wakes: a request for nobody goes where a flag was left over") {
  Scene scene;
  scene.state("a-0", kGoing | NODE_STATE_POWER_UP);
  scene.round();
  scene.state("a-0", kComing);
  scene.asked(0, "a-0");
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-0 @hpc-a/j0-x",
                                 "stale_request POWER_DOWN_FORCE a-0"});
}

TEST_CASE("wakes: an admin's POWER_UP of a node that was off is honoured") {
  Scene scene;
  scene.round();
  scene.state("a-0", kOff | NODE_STATE_POWER_UP);
  scene.round();
  scene.state("a-0", kComing);
  scene.asked(0, "a-0");
  CHECK(scene.rounds(5).empty());
}

TEST_CASE("wakes: a node that came up for a job is nobody's when the job is gone") {
  Scene scene;
  scene.settings.sweeper.orphan_grace = 1h;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  scene.round();
  scene.end_job(7);
  scene.state("a-0", kComing);
  SECTION("though nothing is asked for it, no grace is kept") {
    scene.owned().requests.clear();
    scene.no_vms();
    CHECK(scene.rounds(2) == Texts{"unrequested_node POWER_DOWN_FORCE a-0"});
  }
  SECTION("once it was off, an admin may want it") {
    scene.owned().requests.clear();
    scene.no_vms();
    scene.state("a-0", kOff);
    scene.round();
    scene.state("a-0", kComing);
    scene.asked(0, "a-0");
    CHECK(scene.rounds(5).empty());
  }
  SECTION("a restart of the sweeper does not forget it") {
    const auto kept = parse_memory(to_text(scene.memory));
    REQUIRE(kept);
    CHECK(kept->woken == std::unordered_set<NodeName>{{"a-0"}});
  }
}

TEST_CASE("stale_request: nothing is cancelled while slurmctld is about to call flex-resume") {
  Scene scene;
  scene.asked(7, "a-0");
  scene.state("a-0", kWaking);
  CHECK(scene.rounds(3).empty());
  scene.state("a-0", kComing);
  CHECK(scene.round() == Texts{"stale_request cancel_request a-0 @hpc-a/j7-x job=7",
                               "stale_request POWER_DOWN_FORCE a-0"});
}

// ---- drains ----

TEST_CASE("drains: a noted one is put back as soon as the node powers down") {
  Scene scene;
  Node& node = scene.node("a-0");
  node.extra = with_drain_note("", "fan");
  SECTION("not before slurmctld has begun") {
    node.state = kComing | NODE_STATE_DRAIN | NODE_STATE_POWER_DOWN;
    CHECK(scene.rounds(3).empty());
  }
  SECTION("at once then, also without a memory") {
    node.state = kGoing;
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(std::get<UpdateNodes>(scene.actions.at(0).what).reason == "fan");
  }
  SECTION("also if it is off already") {
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  }
  SECTION("not while a job waits for the node: that would cost the job its place") {
    scene.waiting_job(7, "a-0");
    scene.asked(7, "a-0");
    CHECK(scene.rounds(3).empty());
  }
  SECTION("it outlives a pause that began in between") {
    node.state = kOff | NODE_STATE_DRAIN;
    node.reason = stop_mark("a") + "paused by ann";
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0", "boot_timeout DRAIN a-[1-7]"});
    CHECK(std::get<UpdateNodes>(scene.actions.at(0).what).reason == "fan");
  }
  SECTION("somebody else's drain stays as it is, and the note goes") {
    node.state = kOff | NODE_STATE_DRAIN;
    node.reason = "bob was faster";
    CHECK(scene.round().empty());
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(std::get<UpdateNodes>(scene.actions.at(0).what).reason == "bob was faster");
  }
}

// ---- undrained while off ----

TEST_CASE("unusable_node: cured on two sightings, once") {
  Scene scene;
  scene.state("a-0", kUnusable);
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"unusable_node POWER_DOWN_FORCE a-0"});
  // What does not help is not repeated in each round.
  CHECK(scene.round().empty());
  CHECK(scene.round().empty());
  CHECK(scene.round(1h) == Texts{});
  CHECK(scene.round() == Texts{"unusable_node POWER_DOWN_FORCE a-0"});
}

TEST_CASE("unusable_node: what is drained, has a job or wakes up is left alone") {
  Scene scene;
  scene.state("a-0", kUnusable | NODE_STATE_DRAIN);
  scene.state("a-1", kUnusable | NODE_STATE_POWER_UP);
  scene.waiting_job(7, "a-2");
  scene.state(
      "a-2",
      NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN | NODE_STATE_NO_RESPOND);
  for (int i = 0; i < 4; ++i) {
    for (const std::string& text : scene.round()) CHECK_FALSE(text.starts_with("unusable_node"));
  }
}
