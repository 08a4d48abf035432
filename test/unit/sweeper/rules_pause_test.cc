// SPDX-License-Identifier: GPL-2.0-or-later
// Nodesets that an admin has paused.
#include "lib/fleet/pause.h"
#include "sweeper/words.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

void pause(Scene& scene, const std::string& reason = "new image") {
  scene.shot.pauses["a"] = {.by = "ann", .reason = reason, .since = scene.shot.now};
}

/// Drained as the sweeper, or flexctl, does it.
void drain(Scene& scene, const std::string& hostlist, std::uint32_t state) {
  scene.state(hostlist, state | NODE_STATE_DRAIN);
  for (const NodeName& name : names_in(hostlist))
    scene.node(name.text).reason = pause_reason("a", {.by = "ann", .reason = "new image"});
}

}  // namespace

TEST_CASE("pause: drains what is off or up, and leaves what is on its way") {
  Scene scene;
  scene.running_job(7, "a-0");
  scene.vms("a-[0-1]");
  scene.state("a-1", kIdle);
  scene.waiting_job(8, "a-2");
  scene.asked(8, "a-2");
  scene.state("a-3", kGoing);
  pause(scene);
  CHECK(scene.round() == Texts{"pause DRAIN a-[0-1,4-7]"});
  CHECK(std::get<UpdateNodes>(scene.actions.front().what).reason ==
        "flex: nodeset a stopped: paused by ann: new image; go on with: flexctl resume a");
  CHECK(scene.memory.stopped.at("a").why == "paused by ann: new image");
}

TEST_CASE("pause: a drained node is told as one, whatever else it is") {
  Scene scene;
  scene.running_job(7, "a-0");
  scene.state("a-0", kBusy | NODE_STATE_DRAIN);
  scene.state("a-1", kIdle | NODE_STATE_DRAIN);
  scene.state("a-2", kOff | NODE_STATE_DRAIN);
  scene.state("a-3", kGoing | NODE_STATE_DRAIN);
  scene.state("a-4", kComing | NODE_STATE_DRAIN);
  scene.state("a-5", NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_DRAIN);
  scene.state("a-6", kIdle | NODE_STATE_COMPLETING | NODE_STATE_DRAIN);
  scene.state("a-7", kIdle);
  const Picture picture{scene.settings, scene.shot};
  Texts words;
  for (const NodePicture& node : picture.nodes()) words.emplace_back(node_word(node));
  CHECK(words == Texts{"draining",
                       "drained",
                       "drained",
                       "powering_down",
                       "waiting",
                       "down",
                       "draining",
                       "idle"});
  for (const std::string& word : words)
    CHECK(std::find(kNodeWords.begin(), kNodeWords.end(), word) != kNodeWords.end());
}

TEST_CASE("pause: a request that waits stays, and nothing is asked for") {
  Scene scene;
  scene.set().resubmit_after = Seconds{60};
  scene.waiting_job(8, "a-2");
  scene.asked(8, "a-2").created = scene.shot.now - std::chrono::hours{1};
  scene.make_static("a-5");
  pause(scene);
  scene.round();
  drain(scene, "a-[0-1,3-7]", kOff);
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("pause: a job that nothing was asked for yet goes back to the queue and is told") {
  Scene scene;
  scene.waiting_job(8, "a-2");
  pause(scene);
  scene.round();
  CHECK(scene.comment(8) ==
        "flex: nodeset a is stopped: paused by ann: new image; the job waits until your admin "
        "starts it again");
  CHECK(std::get<UpdateNodes>(scene.actions.back().what).request == NodeRequest::PowerDownForce);
}

TEST_CASE("pause: holds without memory, and an undrained node does not end it") {
  Scene scene;
  pause(scene);
  drain(scene, "a-[0-7]", kOff);
  CHECK(scene.rounds(2).empty());
  scene.memory = {};
  CHECK(scene.rounds(2).empty());
  scene.state("a-3", kOff);
  CHECK(scene.round() == Texts{"pause DRAIN a-3"});
}

TEST_CASE("pause: a node that powers down loses its drain and gets it back") {
  Scene scene;
  pause(scene);
  drain(scene, "a-[1-7]", kOff);
  drain(scene, "a-0", kIdle);
  scene.vms("a-0");
  CHECK(scene.rounds(2).empty());
  scene.no_vms();
  scene.state("a-0", kGoing);
  CHECK(scene.round().empty());
  scene.state("a-0", kOff);
  CHECK(scene.round() == Texts{"pause DRAIN a-0"});
}

TEST_CASE("pause: over when it is taken back, with what is still drained") {
  Scene scene;
  pause(scene);
  drain(scene, "a-[0-7]", kOff);
  scene.node("a-7").reason = "an admin's own";
  scene.rounds(2);
  scene.shot.pauses.clear();
  CHECK(scene.round() == Texts{"pause UNDRAIN a-[0-6]"});
  // Not carried out: it is tried again.
  CHECK(scene.round() == Texts{"pause UNDRAIN a-[0-6]"});
  scene.state("a-[0-6]", kOff);
  CHECK(scene.round().empty());
  CHECK_FALSE(scene.memory.stopped.contains("a"));
}

TEST_CASE("pause: goes on while its file cannot be read") {
  Scene scene;
  pause(scene);
  scene.round();
  drain(scene, "a-[0-7]", kOff);
  scene.shot.pauses.clear();
  scene.shot.are_pauses_known = false;
  CHECK(scene.rounds(3).empty());
  scene.shot.are_pauses_known = true;
  CHECK(scene.round() == Texts{"pause UNDRAIN a-[0-7]"});
}

TEST_CASE("pause: without its file and memory the drained nodes still say so") {
  Scene scene;
  drain(scene, "a-[0-7]", kOff);
  CHECK(scene.rounds(2).empty());
  CHECK(scene.memory.stopped.at("a").why == "paused by ann: new image");
  scene.state("a-[0-7]", kOff);
  scene.round();
  CHECK_FALSE(scene.memory.stopped.contains("a"));
}

TEST_CASE("boot_timeout: a stop is not over because a node that was up has powered down") {
  Scene scene;
  scene.state("a-[1-7]", kOff | NODE_STATE_DRAIN);
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  for (Node& node : scene.shot.nodes.items) node.reason = "flex: nodeset a stopped: 3 boots failed";
  scene.vms("a-0");
  CHECK(scene.rounds(2).empty());
  scene.no_vms();
  scene.state("a-0", kOff);
  CHECK(scene.round() == Texts{"boot_timeout DRAIN a-0"});
}
