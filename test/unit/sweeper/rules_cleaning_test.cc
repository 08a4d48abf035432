// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about what is left over: orphan_instance, empty_mig, finished_request, and the budget.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

TEST_CASE(
    "orphan_instance: a powered-down node's VM is deleted after two sightings and the grace") {
  Scene scene;
  scene.vms("a-[0-1]");
  scene.state("a-1", kIdle);
  CHECK(scene.rounds(12).empty());
  CHECK(scene.round() == Texts{"orphan_instance delete_instances a-0 @hpc-a"});
}

TEST_CASE(
    "orphan_instance: leaves alone what a node wants, what is going, what a request has queued") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.vms("a-0");
  scene.state("a-1", kOff | NODE_STATE_POWER_UP);
  scene.owned().instances.push_back(running({"a-1"}));
  scene.owned().instances.push_back(deleting({"a-2"}));
  scene.asked(8, "a-3", RequestState::Creating);
  CHECK(scene.rounds(20).empty());
}

TEST_CASE("orphan_instance: a name of no nodeset, and an entry without a VM, go too") {
  Scene scene;
  scene.owned().instances.push_back(running({"b-7"}));
  scene.owned().instances.push_back(dead({"a-0"}));
  const Texts texts = scene.rounds(13);
  CHECK(texts == Texts{"orphan_instance delete_instances a-0 @hpc-a",
                       "orphan_instance delete_instances b-7 @hpc-a"});
}

TEST_CASE("orphan_instance: a VM from before the node's power-up is not waited for") {
  Scene scene;
  scene.settings.sweeper.orphan_grace = Seconds{60};
  scene.vms("a-0");
  scene.rounds(2);
  scene.waiting_job(7, "a-0");
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round() == Texts{"orphan_instance delete_instances a-0 @hpc-a"});
}

TEST_CASE("orphan_instance: one sighting in between starts anew") {
  Scene scene;
  scene.settings.sweeper.orphan_grace = Seconds{20};
  scene.vms("a-0");
  scene.rounds(2);
  scene.state("a-0", kIdle);
  scene.round();
  scene.state("a-0", kOff);
  CHECK(scene.rounds(2).empty());
  CHECK(scene.round().size() == 1);
}

TEST_CASE("the budget bounds what is destroyed in a round, and the rest follows") {
  Scene scene;
  scene.settings.sweeper.orphan_grace = Seconds{1};
  scene.settings.sweeper.max_deletes_per_round = 3;
  scene.vms("a-[0-7]");
  scene.rounds(1);
  CHECK(scene.round() == Texts{"orphan_instance delete_instances a-[0-2] @hpc-a"});
  CHECK(scene.postponed == 5);
}

TEST_CASE("a budget of nothing destroys nothing") {
  Scene scene;
  scene.settings.sweeper.max_deletes_per_round = 0;
  scene.vms("a-0");
  scene.asked(7, "a-1");
  scene.running_job(8, "a-2");
  CHECK(scene.rounds(40).empty());
}

TEST_CASE("empty_mig: deleted after the grace") {
  Scene scene;
  scene.owned();
  CHECK(scene.rounds(40).empty());
  CHECK(scene.round() == Texts{"empty_mig delete_group @hpc-a"});
}

TEST_CASE("empty_mig: not with a VM, an active request, or somebody about to use it") {
  Scene scene;
  scene.owned();
  scene.settings.sweeper.empty_mig_grace = Seconds{1};
  SECTION("a VM") {
    scene.vms("a-0");
    scene.state("a-0", kIdle);
  }
  SECTION("a request") {
    scene.waiting_job(7, "a-0");
    scene.asked(7, "a-0");
  }
  SECTION("a job about to be resumed") {
    scene.waiting_job(7, "a-0");
    scene.state("a-0", NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN);
  }
  CHECK(scene.rounds(5).empty());
}

TEST_CASE("empty_mig: a job's own group goes though others of the nodeset wait") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{1};
  scene.owned("hpc-a-j7").group.description += " job=7";
  scene.owned("hpc-a-j8").group.description += " job=8";
  scene.waiting_job(8, "a-0");
  scene.state("a-0", NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN);
  CHECK(scene.rounds(2) == Texts{"empty_mig delete_group @hpc-a-j7"});
}

TEST_CASE("empty_mig: a nodeset that is gone from the config leaves nothing behind") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{1};
  scene.owned("hpc-old", "old");
  CHECK(scene.rounds(2) == Texts{"empty_mig delete_group @hpc-old"});
}

TEST_CASE("finished_request: deleted after an hour, active ones never") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.vms("a-1");
  scene.state("a-1", kIdle);
  scene.asked(7, "a-0");
  scene.asked(6, "a-1", RequestState::Succeeded);
  scene.asked(5, "a-2", RequestState::Cancelled);
  scene.asked(4, "a-3", RequestState::Succeeded).description = "made by hand";
  CHECK(scene.rounds(240).empty());
  CHECK(scene.round() == Texts{"finished_request delete_request @hpc-a/j6-x",
                               "finished_request delete_request @hpc-a/j5-x"});
}

TEST_CASE("empty_mig: one that has a size but nothing in it is waited for longer") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{30};
  scene.owned().group.target_size = 1;
  CHECK(scene.rounds(12).empty());
  CHECK(scene.round() == Texts{"empty_mig delete_group @hpc-a"});
}

TEST_CASE("orphan_instance: a node taken out of the config keeps its VM while Slurm has it up") {
  Scene scene;
  Node other;
  other.name = {"b-7"};
  other.state = kBusy;
  scene.shot.nodes.items.push_back(other);
  scene.owned().instances.push_back(running({"b-7"}));
  CHECK(scene.rounds(40).empty());
}
