// SPDX-License-Identifier: GPL-2.0-or-later
// VMs that are of no use: refused by slurmctld (boot_timeout), or hanging (unhealthy_node). And
// that what was seen of one thing is not held against the next of the same name.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kRefused = kIdle | NODE_STATE_DRAIN | NODE_STATE_INVALID_REG;
const std::string kLow = "Low RealMemory (reported:100 < 90.00% of configured:200)";

class Registry : public Scene {
 public:
  Registry() { set().max_boot_failures = 2; }

  /// Its VM has come and has been refused; its job is back in the queue.
  void refuse(const std::string& name, const std::string& vm, const std::string& reason = kLow) {
    vms(name);
    entry(name).id = vm;
    state(name, kRefused);
    node(name).reason = reason;
    for (Job& known : shot.jobs.items) {
      known.is_running = known.is_configuring = false;
      known.is_pending = true;
      known.nodes.clear();
    }
  }

  void start(JobId id, const std::string& hostlist) {
    shot.jobs.items.clear();
    waiting_job(id, hostlist);
  }

  void off(const std::string& name) {
    state(name, kOff);
    node(name).reason.clear();
    std::erase_if(owned().instances, [&](const Instance& vm) { return vm.name.text == name; });
  }

  std::uint32_t count() {
    const auto found = memory.boot_failures.find("a");
    return found == memory.boot_failures.end() ? 0 : found->second.count;
  }
};

class Hospital : public Scene {
 public:
  Hospital() {
    set().boot_timeout = Seconds{60};
    set().max_repairs = 1;
    make_static("a-0");
    hang("1");
  }

  void hang(const std::string& vm) {
    state("a-0", NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_NO_RESPOND);
    node("a-0").reason = "Not responding";
    vms("a-0");
    entry("a-0").id = vm;
  }
};

}  // namespace

TEST_CASE("boot_timeout: a refused registration is counted and told at once, its VM goes after") {
  Registry scene;
  scene.start(7, "a-0");
  scene.round();
  scene.refuse("a-0", "1");
  CHECK(scene.round() == Texts{"boot_timeout comment job=7"});
  CHECK(
      scene.comment(7) ==
      "flex: VMs came, but slurmctld refuses the registration of a-0: " + kLow +
          "; lower RealMemory on the NodeName line of a-0 in slurm.conf, or take a bigger machine "
          "type; back in the queue");
  CHECK(scene.count() == 1);
  CHECK(scene.round() ==
        Texts{"boot_timeout delete_instances a-0 @hpc-a", "boot_timeout POWER_DOWN_FORCE a-0"});
  CHECK(std::get<DeleteInstances>(scene.actions[0].what).keep_serial_log);
  CHECK_THAT(std::get<UpdateNodes>(scene.actions[1].what).reason,
             StartsWith("flex: slurmctld refuses the registration of a-0: Low RealMemory"));
  CHECK_THAT(scene.actions[0].why, ContainsSubstring("failure 1 of 2 in a row"));
  CHECK(scene.count() == 1);
  // It is slurmctld's drain: nobody puts it back.
  CHECK(scene.memory.drains.empty());
}

TEST_CASE("boot_timeout: refusals stop the nodeset, and the reason says what to change") {
  Registry scene;
  scene.start(7, "a-0");
  scene.round();
  scene.refuse("a-0", "1");
  scene.round();
  scene.off("a-0");
  scene.start(7, "a-1");
  scene.round();
  scene.refuse("a-1", "2");
  CHECK(scene.round() == Texts{"boot_timeout comment job=7", "boot_timeout DRAIN a-[0,2-7]"});
  CHECK_THAT(scene.comment(7),
             StartsWith("flex: nodeset a is stopped: 2 boots in a row failed: slurmctld refuses "
                        "the registration of a-1: Low RealMemory"));
  CHECK_THAT(scene.memory.stopped.at("a").why, ContainsSubstring("on the NodeName line of a-1"));
  scene.round();
  CHECK_THAT(std::get<UpdateNodes>(scene.actions.back().what).reason,
             StartsWith("flex: nodeset a stopped: 2 boots in a row failed"));
}

TEST_CASE("boot_timeout: VMs that come together and are refused are one failure") {
  Registry scene;
  scene.start(7, "a-[0-2]");
  scene.vms("a-[0-2]");
  scene.round();
  for (int i = 0; i < 3; ++i) {
    const std::string name = "a-" + std::to_string(i);
    const std::string vm = scene.entry(name).id;
    scene.state(name, kRefused);
    scene.node(name).reason = kLow;
    scene.round();
  }
  CHECK(scene.count() == 1);
  CHECK_FALSE(scene.memory.stopped.contains("a"));
}

TEST_CASE("boot_timeout: others that come up prove nothing for a node that is refused") {
  Registry scene;
  scene.start(7, "a-0");
  scene.round();
  scene.refuse("a-0", "1");
  scene.rounds(2);
  scene.off("a-0");
  scene.start(8, "a-1");
  scene.vms("a-1");
  scene.round();
  scene.state("a-1", kBusy);
  scene.round();
  CHECK(scene.count() == 1);
  // Its own next VM does.
  scene.waiting_job(9, "a-0");
  scene.round();
  scene.vms("a-0");
  scene.entry("a-0").id = "2";
  scene.state("a-0", kBusy);
  scene.round();
  CHECK(scene.count() == 0);
}

TEST_CASE("boot_timeout: a refusal is one whether or not slurmctld still calls it powering up") {
  Registry scene;
  scene.start(7, "a-0");
  scene.round();
  scene.refuse("a-0", "1");
  scene.state("a-0", kComing | NODE_STATE_DRAIN | NODE_STATE_INVALID_REG);
  scene.round();
  CHECK(scene.count() == 1);
  CHECK(scene.round() ==
        Texts{"boot_timeout delete_instances a-0 @hpc-a", "boot_timeout POWER_DOWN_FORCE a-0"});
}

TEST_CASE("boot_timeout: a node that slurmctld had taken is left alone") {
  Registry scene;
  scene.vms("a-0");
  scene.state("a-0", kIdle);
  scene.round();
  scene.state("a-0", kRefused);
  scene.node("a-0").reason = kLow;
  CHECK(scene.rounds(5).empty());
  CHECK(scene.count() == 0);
}

TEST_CASE("boot_timeout: what was before the first look is left alone, and so is a node at work") {
  Registry lost;
  lost.memory.last_round = {};
  lost.refuse("a-0", "1");
  CHECK(lost.rounds(5).empty());
  Registry busy;
  busy.running_job(7, "a-0");
  busy.vms("a-0");
  busy.state("a-0", kBusy | NODE_STATE_DRAIN | NODE_STATE_INVALID_REG);
  busy.node("a-0").reason = kLow;
  CHECK(busy.rounds(5).empty());
  CHECK(busy.count() == 0);
}

TEST_CASE("boot_timeout: a drain that is not for the registration is no failed boot") {
  Registry scene;
  scene.start(7, "a-0");
  scene.round();
  scene.refuse("a-0", "1", "the admin's own");
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  CHECK(scene.rounds(5).empty());
  CHECK(scene.count() == 0);
}

TEST_CASE("unhealthy_node: a node that hangs for boot_timeout gets a new VM") {
  Hospital ward;
  CHECK(ward.rounds(4).empty());
  CHECK(ward.round() ==
        Texts{"unhealthy_node delete_instances a-0 @hpc-a", "unhealthy_node POWER_DOWN a-0"});
  CHECK(std::get<DeleteInstances>(ward.actions[0].what).keep_serial_log);
  CHECK_THAT(std::get<UpdateNodes>(ward.actions[1].what).reason,
             StartsWith("flex: repair 1 of 1 in a day: its VM runs, but slurmd has not responded"));
  // And after max_repairs it stays.
  ward.hang("2");
  CHECK(ward.rounds(4).empty());
  CHECK(ward.round() == Texts{"unhealthy_node DRAIN a-0"});
  CHECK(std::get<UpdateNodes>(ward.actions[0].what).reason ==
        "flex: gave up after 1 repairs: Not responding");
  // A drain that did not get through is asked for again, and no VM is.
  CHECK(ward.round() == Texts{"unhealthy_node DRAIN a-0"});
  ward.node("a-0").state |= NODE_STATE_DRAIN;
  ward.node("a-0").reason = "flex: gave up after 1 repairs: Not responding";
  CHECK(ward.rounds(5).empty());
}

TEST_CASE("unhealthy_node: each VM has its own boot_timeout to respond") {
  Hospital ward;
  ward.rounds(4);
  ward.hang("2");
  CHECK(ward.rounds(4).empty());
}

TEST_CASE("unhealthy_node: what an admin set DOWN, what goes, and max_repairs 0 are left alone") {
  Hospital ward;
  ward.node("a-0").reason = "moved to another rack";
  CHECK(ward.rounds(10).empty());
  Hospital drained;
  drained.node("a-0").state |= NODE_STATE_DRAIN;
  CHECK(drained.rounds(10).empty());
  Hospital going;
  going.node("a-0").state |= NODE_STATE_POWER_DOWN;
  CHECK(going.rounds(10).empty());
  Hospital off;
  off.set().max_repairs = 0;
  CHECK(off.rounds(10).empty());
}

TEST_CASE("empty_mig: a group made anew under the same name has its own grace") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{60};
  scene.owned().group.id = "1";
  CHECK(scene.rounds(4).empty());
  scene.owned().group.id = "2";
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"empty_mig delete_group @hpc-a"});
}

TEST_CASE("empty_mig: where Google gives no id, the time of its making tells") {
  Scene scene;
  scene.settings.sweeper.empty_mig_grace = Seconds{60};
  CHECK(scene.rounds(4).empty());
  scene.owned().group.created += Seconds{60};
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"empty_mig delete_group @hpc-a"});
}

TEST_CASE("finished_request: another request of the same name is another one") {
  Scene scene;
  scene.settings.sweeper.finished_request_grace = Seconds{60};
  scene.waiting_job(7, "a-1");
  scene.asked(7, "a-1");
  ResizeRequest& done = scene.asked(6, "a-0", RequestState::Succeeded);
  done.id = "1";
  CHECK(scene.rounds(4).empty());
  done.id = "2";
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"finished_request delete_request @hpc-a/j6-x"});
}

TEST_CASE("unbacked_node: the end of one VM's lease is not that of the next") {
  Scene scene;
  scene.vms("a-0");
  scene.state("a-0", kIdle);
  scene.entry("a-0").terminates = scene.shot.now + Seconds{30};
  scene.round();
  scene.entry("a-0").id = "2";
  scene.entry("a-0").terminates.reset();
  scene.round();
  CHECK(scene.memory.lease_ends.empty());
}

TEST_CASE("failed_request: numbers that only make the name free are no failures") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "no capacity"};
  failed.description = request_description(7, nodes("a", 1), {.attempt = 3});
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"failed_request ask a-0 job=7"});
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  CHECK(ask.plan.groups[0].requests[0].way.attempt == 4);
  CHECK(ask.plan.groups[0].requests[0].way.failures == 1);
}

TEST_CASE("failed_request: what failed for another job is not held against the next") {
  Scene scene;
  scene.waiting_job(8, "a-0");
  scene.memory.retries[{"a-0"}] = {
      .attempts = 2, .refusals = 0, .next = scene.shot.now + 1h, .why = "x", .job = 7};
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "no capacity"};
  failed.description = request_description(7, nodes("a", 1), {.attempt = 3, .failures = 2});
  scene.round();
  const Texts second = scene.round();
  CHECK(std::find(second.begin(), second.end(), "unrequested_node ask a-0 job=8") != second.end());
  CHECK(scene.memory.retries.empty());
}
