// SPDX-License-Identifier: GPL-2.0-or-later
// Rule unhealthy_node: new VMs for nodes that a health check has drained.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kDrained = kIdle | NODE_STATE_DRAIN;

class Ward : public Scene {
 public:
  Ward() {
    set().repair_reasons = {"xid", "gpu"};
    set().max_repairs = 2;
  }

  /// A node that is up and drained, on a VM of this number.
  void ill(const std::string& name, const std::string& reason, const std::string& vm = "1") {
    state(name, kDrained);
    node(name).reason = reason;
    vms(name);
    entry(name).id = vm;
  }

  void off(const std::string& name, std::uint32_t state_bits = kOff) {
    state(name, state_bits);
    no_vms();
  }

  std::string why() const { return actions.empty() ? "" : actions.front().why; }

  std::string reason() const {
    return actions.empty() ? "" : std::get<UpdateNodes>(actions.front().what).reason;
  }
};

}  // namespace

TEST_CASE("unhealthy_node: a drained node with such a reason is powered down on two sightings") {
  Ward ward;
  ward.ill("a-0", "NHC: GPU 3 has fallen off the bus");
  CHECK(ward.round().empty());
  CHECK(ward.round() == Texts{"unhealthy_node POWER_DOWN a-0"});
  CHECK(ward.why() == "repair 1 of 2 in a day: NHC: GPU 3 has fallen off the bus");
  CHECK(ward.reason().empty());
  CHECK(ward.memory.repairs.at({"a-0"}).times.size() == 1);
}

TEST_CASE("unhealthy_node: other reasons, other states and our own drains are left alone") {
  Ward ward;
  ward.ill("a-0", "moved to another rack");
  ward.ill("a-1", "flex: lease ends, says the gpu");
  ward.ill("a-2", "flex: gave up after 2 repairs: Xid 79");
  ward.ill("a-3", "Xid 79");
  ward.state("a-3", kIdle);
  ward.ill("a-4", "");
  ward.ill("a-5", "Xid 79");
  ward.state("a-5", kGoing | NODE_STATE_DRAIN);
  ward.ill("a-6", "Xid 79");
  ward.state("a-6", kDrained | NODE_STATE_POWER_DOWN);
  for (int i = 0; i < 3; ++i) CHECK(ward.round().empty());
}

TEST_CASE("unhealthy_node: waits until no job is on it") {
  Ward ward;
  ward.running_job(7, "a-0");
  ward.ill("a-0", "xid 63");
  ward.state("a-0", kBusy | NODE_STATE_DRAIN);
  CHECK(ward.rounds(5).empty());
  ward.end_job(7);
  ward.state("a-0", kDrained | NODE_STATE_COMPLETING);
  CHECK(ward.rounds(3).empty());
  ward.state("a-0", kDrained);
  CHECK(ward.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-0"});
}

TEST_CASE("unhealthy_node: nothing to match and max_repairs 0 switch it off") {
  Ward ward;
  ward.set().repair_reasons.clear();
  ward.ill("a-0", "xid 63");
  CHECK(ward.rounds(3).empty());
  Ward other;
  other.set().max_repairs = 0;
  other.ill("a-0", "xid 63");
  CHECK(other.rounds(3).empty());
}

TEST_CASE("unhealthy_node: a drain that Slurm leaves is taken away when the node is off") {
  Ward ward;
  ward.make_static("a-0");
  ward.ill("a-0", "xid 63");
  ward.rounds(2);
  ward.off("a-0", kOff | NODE_STATE_DRAIN);
  CHECK(ward.round().empty());
  CHECK(ward.round() == Texts{"unhealthy_node UNDRAIN a-0"});
  CHECK(ward.memory.repairs.at({"a-0"}).times.size() == 1);
  ward.state("a-0", kOff);
  CHECK(ward.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("unhealthy_node: a static node whose drain went with the VM is raised at once") {
  Ward ward;
  ward.make_static("a-0");
  ward.ill("a-0", "xid 63");
  ward.rounds(2);
  ward.off("a-0");
  CHECK(ward.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("unhealthy_node: a node that was drained while it was off is an admin's") {
  Ward ward;
  ward.state("a-0", kOff | NODE_STATE_DRAIN);
  ward.node("a-0").reason = "no GPU quota";
  CHECK(ward.rounds(3).empty());
  // Also after a repair that is over.
  ward.ill("a-1", "xid 63");
  ward.rounds(2);
  ward.off("a-1");
  ward.round();
  ward.state("a-1", kOff | NODE_STATE_DRAIN);
  CHECK(ward.rounds(3).empty());
}

TEST_CASE("unhealthy_node: not while the old VM is still there") {
  Ward ward;
  ward.ill("a-0", "xid 63");
  ward.state("a-0", kOff | NODE_STATE_DRAIN);
  ward.entry("a-0").action = InstanceAction::Deleting;
  CHECK(ward.rounds(3).empty());
}

TEST_CASE("unhealthy_node: gives up after max_repairs in a day, and says so once") {
  Ward ward;
  for (int vm = 1; vm <= 2; ++vm) {
    ward.ill("a-0", "Xid 79", std::to_string(vm));
    CHECK(ward.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-0"});
    ward.off("a-0");
    ward.round();
  }
  ward.ill("a-0", "Xid 79", "3");
  CHECK(ward.rounds(2) == Texts{"unhealthy_node DRAIN a-0"});
  CHECK(ward.reason() == "flex: gave up after 2 repairs: Xid 79");
  ward.node("a-0").reason = ward.reason();
  CHECK(ward.memory.repairs.at({"a-0"}).has_given_up);
  for (int i = 0; i < 5; ++i) CHECK(ward.round().empty());
  SECTION("an admin who undrains it gives it another chance") {
    ward.state("a-0", kIdle);
    ward.node("a-0").reason.clear();
    ward.round();
    CHECK(ward.memory.repairs.empty());
  }
  SECTION("also while it is off") {
    ward.off("a-0", kOff | NODE_STATE_DRAIN);
    ward.rounds(2);
    ward.state("a-0", kOff);
    ward.node("a-0").reason.clear();
    ward.round();
    CHECK(ward.memory.repairs.empty());
  }
  SECTION("slurmctld's own power-down is no chance: it is drained again") {
    ward.off("a-0", kGoing);
    CHECK(ward.round() == Texts{"unbacked_node DRAIN a-0"});
    CHECK(ward.reason() == "flex: gave up after 2 repairs: Xid 79");
    ward.off("a-0", kOff | NODE_STATE_DRAIN);
    ward.round();
    CHECK(ward.memory.repairs.at({"a-0"}).times.size() == 2);
    CHECK(ward.memory.repairs.at({"a-0"}).has_given_up);
  }
  SECTION("a day later there is another") {
    ward.node("a-0").reason = "Xid 79";
    ward.round(24h);
    CHECK(ward.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-0"});
  }
  SECTION("with its lease over it stays drained") {
    ward.off("a-0", kDrained);
    ward.rounds(2);
    CHECK(ward.memory.drains.at({"a-0"}) == "flex: gave up after 2 repairs: Xid 79");
  }
}

TEST_CASE("unhealthy_node: a power-down that was not carried out is not counted twice") {
  Ward ward;
  ward.ill("a-0", "Xid 79");
  ward.rounds(6);
  CHECK(ward.actions.size() == 1);
  CHECK(ward.memory.repairs.at({"a-0"}).times.size() == 1);
}

TEST_CASE("unhealthy_node: repairs in the future of a clock that was set back do not count") {
  Ward ward;
  ward.memory.repairs[{"a-0"}].times = {ward.shot.now + 1h, ward.shot.now + 2h};
  ward.ill("a-0", "Xid 79");
  CHECK(ward.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-0"});
  CHECK(ward.memory.repairs.at({"a-0"}).times.size() == 1);
}

TEST_CASE("unhealthy_node: the budget bounds it; each reason is one action") {
  Ward ward;
  ward.settings.sweeper.max_deletes_per_round = 2;
  ward.ill("a-0", "Xid 79");
  ward.ill("a-1", "Xid 79");
  ward.ill("a-2", "gpu lost");
  CHECK(ward.rounds(2) == Texts{"unhealthy_node POWER_DOWN a-[0-1]"});
  CHECK(ward.postponed == 1);
}

TEST_CASE("unhealthy_node: a VM that is lost under such a node needs no drain put back") {
  Ward ward;
  ward.owned();
  ward.state("a-0", kDrained);
  ward.node("a-0").reason = "Xid 79";
  CHECK(ward.rounds(2) == Texts{"unbacked_node POWER_DOWN_FORCE a-0"});
  CHECK(ward.memory.drains.empty());
}

TEST_CASE("unhealthy_node: what is remembered of nodes that are gone is forgotten") {
  Ward ward;
  ward.memory.repairs[{"b-0"}].times = {ward.shot.now};
  ward.memory.repairs[{"a-0"}].times = {ward.shot.now - 25h};
  ward.round();
  CHECK(ward.memory.repairs.empty());
}

TEST_CASE("unbacked_node: an admin's drain outlives the power-down") {
  Scene scene;
  scene.owned();
  scene.make_static("a-0");
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "bad fan";
  CHECK(scene.rounds(2) == Texts{"unbacked_node POWER_DOWN_FORCE a-0"});
  scene.state("a-0", kGoing);
  CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  CHECK(std::get<UpdateNodes>(scene.actions.front().what).reason == "bad fan");
  scene.state("a-0", kOff | NODE_STATE_DRAIN);
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("unbacked_node: a static node that an admin drains and powers down stays drained") {
  Scene scene;
  scene.make_static("a-0");
  scene.vms("a-0");
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "bad fan";
  CHECK(scene.rounds(5).empty());
  scene.state("a-0", kGoing);  // which takes the drain away
  CHECK(scene.round() == Texts{"unbacked_node DRAIN a-0"});
  CHECK(std::get<UpdateNodes>(scene.actions.front().what).reason == "bad fan");
  scene.no_vms();
  scene.state("a-0", kOff | NODE_STATE_DRAIN);
  CHECK(scene.rounds(3).empty());
  scene.state("a-0", kOff);
  scene.node("a-0").reason.clear();
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("unbacked_node: a static node that was undrained while it was up is asked for again") {
  Scene scene;
  scene.make_static("a-0");
  scene.vms("a-0");
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "bad fan";
  scene.rounds(3);
  scene.state("a-0", kIdle);
  scene.node("a-0").reason.clear();
  CHECK(scene.round().empty());
  CHECK(scene.memory.drains.empty());
  scene.no_vms();
  scene.state("a-0", kOff);
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}
