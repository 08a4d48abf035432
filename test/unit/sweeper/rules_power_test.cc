// SPDX-License-Identifier: GPL-2.0-or-later
// Power flags and drains: for whom a node comes up, drains that are put back, nodes that were
// undrained while off.
#include "lib/fleet/node_extra.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/node_state.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

constexpr std::uint32_t kWaking = kComing | NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP;
constexpr std::uint32_t kPowerDown = NODE_STATE_POWER_DOWN;
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

namespace {

/// What the last round wants to be noted: "a-0 fan", or "a-0" for a drain that is over.
Texts notes_of(const Scene& scene) {
  Texts texts;
  for (const Action& action : scene.actions) {
    const auto* note = std::get_if<NoteDrain>(&action.what);
    if (note == nullptr) continue;
    CHECK(kind_text(action) == (note->reason.empty() ? "forget_drain" : "note_drain"));
    texts.push_back(fold_hostlist(note->nodes) + (note->reason.empty() ? "" : " " + note->reason));
  }
  return texts;
}

/// a-0 is up, and an admin has drained it for a fan; the sweeper has seen and noted it.
struct Drained : Scene {
  Drained() {
    vms("a-0");
    state("a-0", kIdle | NODE_STATE_DRAIN);
    node("a-0").reason = "fan";
    round();
    node("a-0").extra = with_drain_note("", "fan");
  }

  /// slurmctld powers it down by itself: DRAIN goes, the reason stays.
  void suspend(std::uint32_t state_then = kGoing) {
    no_vms();
    state("a-0", state_then);
  }

  /// What UNDRAIN, RESUME and IDLE do.
  void undrain(std::uint32_t state_then) {
    state("a-0", state_then);
    node("a-0").reason.clear();
  }

  std::string reason() { return std::get<UpdateNodes>(actions.at(0).what).reason; }
};

}  // namespace

TEST_CASE("drains: each is noted while the node is up, in one action for a reason") {
  Scene scene;
  scene.make_static("a-2");
  scene.vms("a-[0-3]");
  scene.state("a-[0-2]", kIdle | NODE_STATE_DRAIN);
  for (const char* name : {"a-0", "a-1", "a-2"}) scene.node(name).reason = "fan";
  scene.node("a-2").reason = "flex: gave up after 2 repairs: Xid 79";
  scene.state("a-3", NODE_STATE_DOWN | NODE_STATE_CLOUD);
  scene.node("a-3").reason = "ann looks at it";
  CHECK(scene.round().empty());
  CHECK(notes_of(scene) ==
        Texts{"a-3 ann looks at it", "a-[0-1] fan", "a-2 flex: gave up after 2 repairs: Xid 79"});
  for (const char* name : {"a-0", "a-1", "a-2", "a-3"})
    scene.node(name).extra = with_drain_note("", scene.node(name).reason);
  CHECK(scene.round().empty());
  CHECK(notes_of(scene).empty());
  scene.node("a-0").reason = "fan and disk";
  scene.round();
  CHECK(notes_of(scene) == Texts{"a-0 fan and disk"});
}

TEST_CASE("drains: slurmctld's own power-down takes one, and it is put back") {
  Drained scene;
  SECTION("as soon as it is seen") {
    scene.suspend();
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(scene.reason() == "fan");
  }
  SECTION("without a memory") {
    scene.suspend(kOff);
    scene.memory = {};
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(scene.reason() == "fan");
  }
  SECTION("without the note") {
    scene.suspend();
    scene.node("a-0").extra.clear();
    const auto kept = parse_memory(to_text(scene.memory));
    REQUIRE(kept);
    scene.memory = *kept;
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  }
  SECTION("an admin's power-down has a reason of its own") {
    scene.suspend(kOff);
    scene.node("a-0").reason = "saving power";
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(scene.reason() == "fan");
  }
  SECTION("before 23.11 a power-up takes the reason") {
    scene.state("a-0", kComing | NODE_STATE_DRAIN);
    scene.node("a-0").reason.clear();
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(scene.reason() == "fan");
  }
  SECTION("one that was drained while it was off, and powered down again") {
    scene.state("a-0", kOff | NODE_STATE_DRAIN);
    scene.rounds(3);
    scene.suspend();
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  }
  SECTION("a node that is left DOWN is made whole first") {
    scene.suspend(NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN);
    scene.node("a-0").reason = "ResumeTimeout reached";
    CHECK(scene.round() == Texts{"unbacked_node IDLE a-0", "unbacked_node DRAIN a-0"});
  }
}

TEST_CASE("drains: an admin's undrain is not undone, whenever it was") {
  Drained scene;
  const bool has_memory = GENERATE(true, false);
  if (!has_memory) scene.memory = {};
  const std::uint32_t state_then =
      GENERATE(values<std::uint32_t>({kIdle, kBusy, kGoing, kOff, kUnusable, kOff | kPowerDown}));
  scene.undrain(state_then);
  CAPTURE(has_memory, state_text(scene.node("a-0")));
  const Texts texts = scene.round();
  CHECK(std::count(texts.begin(), texts.end(), "unbacked_node DRAIN a-0") == 0);
  CHECK(notes_of(scene) == Texts{"a-0"});
  CHECK(scene.memory.drains.empty());
  scene.node("a-0").extra.clear();
  scene.suspend(kOff);
  CHECK(scene.round().empty());
}

TEST_CASE("drains: an undrain that is still noted, its sweeper having died, is no lost drain") {
  Drained scene;
  scene.round();
  scene.undrain(kOff);
  scene.round();
  CHECK(notes_of(scene) == Texts{"a-0"});
  // The note is still there when the node gets its next job.
  scene.state("a-0", kComing);
  const Texts texts = scene.round();
  CHECK(std::count(texts.begin(), texts.end(), "unbacked_node DRAIN a-0") == 0);
  CHECK(notes_of(scene) == Texts{"a-0"});
  CHECK(scene.memory.drains.empty());
}

TEST_CASE("drains: an undrain after it was put back is not undone, though no VM can be seen") {
  Drained scene;
  scene.suspend();
  for (int look = 0; look < 2; ++look) {
    const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
    CHECK(actions.size() == (look == 0 ? 1 : 0));
    scene.state("a-0", kGoing | NODE_STATE_DRAIN);
  }
  scene.undrain(kGoing);
  scene.round();
  CHECK(notes_of(scene) == Texts{"a-0"});
}

TEST_CASE("drains: a job that got the node before the drain was back keeps it") {
  Drained scene;
  scene.no_vms();
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  scene.node("a-0").reason.clear();  // as allocating it does
  SECTION("it was drained a moment ago: a power-down has taken it") {
    CHECK(scene.rounds(3).empty());
    scene.owned().requests.clear();
    scene.vms("a-0");
    scene.state("a-0", kBusy);
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(scene.reason() == "fan");
  }
  SECTION("nobody has looked for long: an admin may have undrained it") {
    scene.round(1h);
    CHECK(notes_of(scene) == Texts{"a-0"});
  }
  SECTION("it was off: an admin has undrained it") {
    scene.state("a-0", kOff | NODE_STATE_DRAIN);
    scene.node("a-0").reason = "fan";
    scene.owned().requests.clear();
    scene.no_vms();
    scene.end_job(7);
    scene.rounds(2);
    scene.waiting_job(8, "a-0");
    scene.node("a-0").reason.clear();
    scene.round();
    CHECK(notes_of(scene) == Texts{"a-0"});
  }
}

TEST_CASE("drains: an admin's DOWN of a static node is drained again when its VM is gone") {
  Scene scene;
  scene.make_static("a-0");
  scene.vms("a-0");
  scene.state("a-0", NODE_STATE_DOWN | NODE_STATE_CLOUD);
  scene.node("a-0").reason = "ann looks at it";
  CHECK(scene.round().empty());
  scene.no_vms();
  CHECK(scene.rounds(2) == Texts{"unbacked_node POWER_DOWN_FORCE a-0"});
  scene.node("a-0").extra = with_drain_note("", "ann looks at it");
  scene.state("a-0", kGoing);
  CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  scene.state("a-0", kOff | NODE_STATE_DRAIN);
  CHECK(scene.rounds(3).empty());
  scene.state("a-0", kOff);
  scene.node("a-0").reason.clear();
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("drains: what slurmctld says of itself is not put back") {
  Scene scene;
  scene.make_static("a-0");
  scene.vms("a-0");
  SECTION("POWER_DOWN_ASAP") {
    scene.state("a-0", kIdle | NODE_STATE_DRAIN | NODE_STATE_POWER_DOWN);
    scene.node("a-0").reason = "POWER_DOWN_ASAP";
  }
  SECTION("a node that does not respond") {
    scene.state("a-0", NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_NO_RESPOND);
    scene.node("a-0").reason = "Not responding";
  }
  SECTION("a reboot") {
    scene.state("a-0", kIdle | NODE_STATE_DRAIN | NODE_STATE_REBOOT_REQUESTED);
    scene.node("a-0").reason = "new kernel";
  }
  scene.rounds(3);
  CHECK(notes_of(scene).empty());
  scene.no_vms();
  scene.state("a-0", kGoing);
  CHECK(scene.round().empty());
  scene.state("a-0", kOff);
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("drains: one that was powered down by POWER_DOWN_ASAP comes back") {
  Drained scene;
  scene.state("a-0", kIdle | NODE_STATE_DRAIN | NODE_STATE_POWER_DOWN);
  CHECK(scene.round().empty());
  scene.suspend();
  CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
}

TEST_CASE("drains: a noted one is put back as soon as the node powers down") {
  Scene scene;
  Node& node = scene.node("a-0");
  node.extra = with_drain_note("", "fan");
  node.reason = "fan";
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
  SECTION("it outlives a pause that began in between") {
    node.state = kOff | NODE_STATE_DRAIN;
    node.reason = stop_mark("a") + "paused by ann";
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0", "boot_timeout DRAIN a-[1-7]"});
    CHECK(std::get<UpdateNodes>(scene.actions.at(0).what).reason == "fan");
  }
  SECTION("somebody else's drain stays as it is, and is noted") {
    node.state = kOff | NODE_STATE_DRAIN;
    node.reason = "bob was faster";
    CHECK(scene.round().empty());
    CHECK(notes_of(scene) == Texts{"a-0 bob was faster"});
  }
  SECTION("a repair beside it comes first") {
    scene.set().repair_reasons = {"xid"};
    scene.vms("a-0");
    node.state = kIdle | NODE_STATE_DRAIN;
    node.reason = "Xid 79";
    CHECK(scene.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-0"});
    scene.no_vms();
    node.state = kGoing;
    CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(std::get<UpdateNodes>(scene.actions.at(0).what).reason == "fan");
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
