// SPDX-License-Identifier: GPL-2.0-or-later
// A look that shows some nodesets only, and lists that were not read in this round.
#include "sweeper/seen_part.h"

#include "lib/fleet/node_extra.h"
#include "sweeper/kept_groups.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

/// Nodesets "a" and "b", each with a VM that nobody needs.
struct TwoSets : Scene {
  TwoSets() : Scene(2) {
    settings = config({nodeset("a", nodes("a", 2)), nodeset("b", nodes("b", 2))});
    settings.sweeper.orphan_grace = Seconds{0};
    for (const NodeName& name : settings.nodesets[1].nodes) {
      Node node;
      node.name = name;
      node.state = kOff;
      shot.nodes.items.push_back(node);
    }
    vms("a-0");
    owned("hpc-b", "b").instances.push_back(running({"b-0"}));
    owned("hpc-b", "b").group.target_size = 1;
    shot.seen_once = {"a", "b"};
  }

  void hide(const std::string& set) { shot.unseen.emplace(set, Error{ErrorKind::Retry, "away"}); }
};

}  // namespace

TEST_CASE("seen part: nothing is decided about a nodeset that was not seen", "[rules]") {
  TwoSets scene;
  scene.hide("b");
  CHECK(scene.rounds(3) == Texts{"orphan_instance delete_instances a-0 @hpc-a"});
  scene.shot.unseen.clear();
  scene.no_vms();
  // What was known of it before it was hidden counts.
  scene.rounds(1);
  CHECK(scene.round() == Texts{"orphan_instance delete_instances b-0 @hpc-b"});
}

TEST_CASE("seen part: a round that does not see a nodeset forgets nothing of it", "[rules]") {
  TwoSets scene;
  scene.round();
  scene.hide("b");
  scene.memory.armed[{"b-1"}] = scene.shot.now;
  scene.memory.lease_ends[{"b-0"}].ends = scene.shot.now;
  scene.memory.retries[{"b-1"}].attempts = 2;
  scene.round();
  CHECK(scene.memory.armed.contains({"b-1"}));
  CHECK(scene.memory.lease_ends.contains({"b-0"}));
  CHECK(scene.memory.retries.at({"b-1"}).attempts == 2);
  scene.shot.unseen.clear();
  scene.no_vms();
  CHECK(scene.round() == Texts{"orphan_instance delete_instances b-0 @hpc-b"});
}

TEST_CASE("seen part: a nodeset that shares a job with a hidden one is left alone, too",
          "[rules]") {
  TwoSets scene;
  scene.waiting_job(7, "a-1,b-1");
  scene.hide("b");
  CHECK(hidden_nodesets(scene.settings, scene.shot) == std::set<std::string>{"a", "b"});
  CHECK(scene.rounds(3).empty());
  scene.end_job(7);
  CHECK(hidden_nodesets(scene.settings, scene.shot) == std::set<std::string>{"b"});
}

TEST_CASE("seen part: fences of hidden VMs stay", "[rules]") {
  TwoSets scene;
  scene.state("b-0", kBusy);
  scene.owned("hpc-b", "b").instances[0].terminates = scene.shot.now + Seconds{7200};
  const Texts made = scene.round();
  REQUIRE(made.size() == 1);
  CHECK(made[0].starts_with("lease_end"));
  for (const Action& action : scene.actions) {
    if (const auto* set = std::get_if<SetReservation>(&action.what))
      scene.shot.reservations.items.push_back(set->reservation);
  }
  scene.hide("b");
  for (const std::string& text : scene.rounds(2)) CHECK_FALSE(text.starts_with("lease_end"));
}

TEST_CASE("seen part: jobs of hidden nodesets are kept waiting", "[rules]") {
  TwoSets scene;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.waiting_job(7, "b-1");
  scene.waiting_job(8, "a-1");
  for (const bool was_seen : {true, false}) {
    scene.hide("b");
    scene.memory.armed.clear();
    scene.memory.armed[{"a-1"}] = scene.memory.armed[{"b-1"}] = scene.shot.now - Seconds{80};
    if (!was_seen) scene.shot.seen_once.clear();
    if (was_seen) {
      ResizeRequest asked = request("j7-x", RequestState::Accepted, {{"b-1"}});
      scene.owned("hpc-b", "b").requests = {asked};
    } else {
      scene.owned("hpc-b", "b").requests.clear();
    }
    const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
    REQUIRE(actions.size() == 1);
    CHECK(nodes_of(actions[0]) == std::vector<NodeName>{{"b-1"}});
  }
}

TEST_CASE("keep_waiting: blind from the start, with what is remembered", "[rules]") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.shot.seen_once.clear();
  scene.waiting_job(7, "a-0").start_time = scene.shot.now - Seconds{90};
  scene.waiting_job(8, "a-1").start_time = scene.shot.now - Seconds{90};
  scene.waiting_job(9, "a-2").start_time = scene.shot.now - Seconds{10};
  scene.state("a-3", kComing);  // nobody waits for it
  scene.memory = {};
  // It had a VM when it was last seen.
  scene.memory.lease_ends[{"a-1"}].ends = scene.shot.now + Seconds{1000};
  const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
  REQUIRE(actions.size() == 1);
  CHECK(nodes_of(actions[0]) == nodes("a", 1));
  // What is remembered counts more than when the job began.
  scene.memory.armed[{"a-0"}] = scene.shot.now - Seconds{10};
  CHECK(decide_blindly(scene.settings, scene.shot, scene.memory).actions.empty());
}

TEST_CASE("seen part: a drain is put back though no VM can be seen", "[rules]") {
  TwoSets scene;
  Node& node = scene.node("b-1");
  node.reason = "fan";
  node.extra = with_drain_note("", "fan");
  node.state = kGoing;
  SECTION("of this nodeset") {
    scene.hide("b");
    CHECK(scene.round() == Texts{"unbacked_node DRAIN b-1"});
  }
  SECTION("at all") {
    const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
    REQUIRE(actions.size() == 1);
    CHECK(kind_text(actions[0]) == "DRAIN");
    CHECK(nodes_of(actions[0]) == nodes("b", 1, 1));
  }
}

TEST_CASE("kept groups: those that actions go by, if their lists are older", "[rules]") {
  TwoSets scene;
  SweptGroup& group = scene.owned("hpc-a");
  const std::vector<Action> deletes{
      {.rule = Rule::OrphanInstance,
       .why = {},
       .what = DeleteInstances{.group = {"hpc-a"}, .instances = {running({"a-0"})}}}};
  const std::vector<Action> node{
      {.rule = Rule::UnbackedNode, .why = {}, .what = UpdateNodes{.nodes = {{"a-0"}}}}};
  const std::vector<Action> told{
      {.rule = Rule::JobNote, .why = {}, .what = TellJob{.job = 7}},
      {.rule = Rule::NodeNote, .why = {}, .what = NoteLease{.nodes = {{"a-0"}}, .lease = {}}}};
  CHECK(kept_groups_of(scene.settings, scene.shot, deletes).empty());
  group.is_kept = true;
  const std::set<MigName> expected{{"hpc-a"}};
  CHECK(kept_groups_of(scene.settings, scene.shot, deletes) == expected);
  CHECK(kept_groups_of(scene.settings, scene.shot, node) == expected);
  CHECK(kept_groups_of(scene.settings, scene.shot, told).empty());
  const std::vector<Action> other{
      {.rule = Rule::UnbackedNode, .why = {}, .what = UpdateNodes{.nodes = {{"b-0"}}}}};
  CHECK(kept_groups_of(scene.settings, scene.shot, other).empty());
}
