// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about nodes: unrequested_node, static_node, unbacked_node, keep_waiting, boot_timeout.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

TEST_CASE(
    "unrequested_node: a job's nodes without a request are asked for on the second sighting") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"unrequested_node ask a-[0-3] job=7"});
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  REQUIRE(ask.plan.groups.size() == 1);
  CHECK_FALSE(ask.plan.groups[0].exists);
  REQUIRE(ask.plan.groups[0].requests.size() == 1);
  CHECK(ask.plan.groups[0].requests[0].spec.run_duration == std::chrono::minutes{75});
}

TEST_CASE("unrequested_node: asks under the name that flex-resume would have used") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  scene.rounds(2);
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  Demand demand;
  demand.jobs.push_back({.job = scene.shot.jobs.items[0], .nodes = nodes("a", 4)});
  FleetView fleet;
  fleet[0] = {};
  const ResumePlan resume = plan_resume(scene.settings, "hpc", demand, fleet);
  CHECK(ask.plan.groups[0].requests[0].spec.name == resume.groups[0].requests[0].spec.name);
  CHECK(ask.plan.groups[0].spec.name == resume.groups[0].spec.name);
}

TEST_CASE(
    "unrequested_node: leaves alone what has a request or a VM, and what is not powering up") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  scene.waiting_job(8, "a-2");
  scene.vms("a-2");
  scene.state("a-3", kGoing);
  CHECK(scene.rounds(3).empty());
}

TEST_CASE(
    "unrequested_node: a job is asked for only when all of its missing nodes were seen twice") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.state("a-1", kOff);
  CHECK(scene.round().empty());
  scene.state("a-1", kComingForJob);
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"unrequested_node ask a-[0-1] job=7"});
}

TEST_CASE("unrequested_node: a VM that was lost while booting is asked for alone") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.vms("a-[0-1]");
  scene.entry("a-1") = dead({"a-1"});
  CHECK(scene.rounds(2) == Texts{"unrequested_node ask a-1 job=7"});
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  CHECK(ask.plan.groups[0].requests[0].dead.size() == 1);
}

TEST_CASE(
    "unrequested_node: a dynamic node that comes up for nobody is given back after the grace") {
  Scene scene;
  scene.state("a-0", kComing);
  CHECK(scene.rounds(12).empty());
  CHECK(scene.round() == Texts{"unrequested_node POWER_DOWN_FORCE a-0"});
}

TEST_CASE(
    "unrequested_node: a static node is asked for without a job, each with a request of its own") {
  Scene scene;
  scene.make_static("a-[0-1]");
  scene.state("a-[0-1]", kComing);
  CHECK(scene.rounds(2) == Texts{"unrequested_node ask a-[0-1]"});
  CHECK(std::get<AskForNodes>(scene.actions.front().what).plan.groups[0].requests.size() == 2);
}

TEST_CASE("unrequested_node: a name that a foreign group has is refused, not used") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  Group foreign;
  foreign.name = {"hpc-a"};
  foreign.description = "somebody else's";
  scene.shot.foreign_groups.push_back(foreign);
  scene.rounds(2);
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  CHECK(ask.plan.groups.empty());
  REQUIRE(ask.plan.refusals.size() == 1);
  CHECK(ask.plan.refusals[0].error.code == "FOREIGN_GROUP");
}

TEST_CASE(
    "static_node: powered up at once, one that is drained, down or on its way is left alone") {
  Scene scene;
  scene.make_static("a-[0-4]");
  scene.state("a-1", kOff | NODE_STATE_DRAIN);
  scene.state("a-2", kComing);
  scene.asked(0, "a-2");
  scene.state("a-3", kGoing);
  scene.state("a-4", kOff | NODE_STATE_POWER_UP);
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("static_node: its old VM's name must be free first") {
  Scene scene;
  scene.make_static("a-0");
  scene.owned().instances.push_back(deleting({"a-0"}));
  CHECK(scene.round().empty());
  scene.no_vms();
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE(
    "static_node: one that never gets a VM is tried less and less often, one that had one at "
    "once") {
  Scene scene;
  scene.make_static("a-0");
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
  CHECK(scene.rounds(7).empty());
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
  scene.state("a-0", kIdle);
  scene.vms("a-0");
  CHECK(scene.round().empty());
  scene.state("a-0", kOff);
  scene.no_vms();
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE(
    "unbacked_node: a running job whose VM is gone is told, and its node is set DOWN and powered "
    "down") {
  Scene scene;
  scene.running_job(7, "a-[0-1]");
  scene.vms("a-0");
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"unbacked_node comment job=7",
                               "unbacked_node DOWN a-1",
                               "unbacked_node POWER_DOWN a-1"});
  CHECK(scene.comment(7) == "flex: lost a-1: its VM is gone; back in the queue");
  CHECK(std::get<UpdateNodes>(scene.actions[1].what).reason == "flex: its VM is gone");
}

TEST_CASE("unbacked_node: a job that may not be requeued is told so") {
  Scene scene;
  scene.owned();
  scene.running_job(7, "a-0").may_requeue = false;
  scene.rounds(2);
  CHECK(scene.comment(7) == "flex: lost a-0: its VM is gone; it may not be requeued");
}

TEST_CASE("unbacked_node: after the lease the reason says so") {
  Scene scene;
  scene.running_job(7, "a-0");
  scene.vms("a-0");
  scene.entry("a-0").terminates = scene.shot.now + Seconds{20};
  scene.round();
  scene.no_vms();
  scene.rounds(2);
  CHECK(scene.comment(7) == "flex: lost a-0: its VM's run duration is over; back in the queue");
}

TEST_CASE(
    "unbacked_node: an idle node is powered down, one that is on its way down already is left "
    "alone") {
  Scene scene;
  scene.owned();
  scene.state("a-0", kIdle);
  scene.state("a-1", kIdle | NODE_STATE_POWER_DOWN);
  scene.state("a-2", NODE_STATE_DOWN | NODE_STATE_CLOUD);
  CHECK(scene.rounds(2) == Texts{"unbacked_node POWER_DOWN_FORCE a-[0,2]"});
}

TEST_CASE(
    "unbacked_node: a VM that is there, or still going, is left alone; so is a node that is not a "
    "cloud's") {
  Scene scene;
  scene.running_job(7, "a-[0-1]");
  scene.vms("a-[0-1]");
  scene.entry("a-1").status = InstanceStatus::Stopping;
  scene.state("a-2", NODE_STATE_IDLE);
  CHECK(scene.rounds(5).empty());
}

TEST_CASE("unbacked_node: one sighting is not enough") {
  Scene scene;
  scene.running_job(7, "a-0");
  CHECK(scene.round().empty());
  scene.vms("a-0");
  CHECK(scene.round().empty());
  scene.no_vms();
  CHECK(scene.round().empty());
}

TEST_CASE("unbacked_node: when everything seems to be gone at once it looks for longer") {
  Scene scene{40};
  scene.owned();
  scene.state("a-[0-39]", kIdle);
  CHECK(scene.rounds(20).empty());
  CHECK(scene.rounds(2).size() == 1);
}

TEST_CASE("unbacked_node: a node left DOWN after ResumeTimeout is put back, an admin's is not") {
  Scene scene;
  const std::uint32_t down = NODE_STATE_DOWN | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
  scene.state("a-[0-2]", down);
  scene.node("a-0").reason = "ResumeTimeout reached";
  scene.node("a-1").reason = "flex: its VM is gone";
  scene.node("a-2").reason = "broken fan";
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"unbacked_node IDLE a-[0-1]"});
}

TEST_CASE("keep_waiting: re-arms before ResumeTimeout, and again only after that has passed") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{300};
  CHECK(scene.round().empty());
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  // Half of it, counted from the round before the nodes went up.
  CHECK(scene.rounds(9).empty());
  CHECK(scene.round() == Texts{"keep_waiting POWER_UP a-[0-1]"});
  CHECK(std::get<UpdateNodes>(scene.actions.front().what).only_without_vm);
  // As long as slurmctld has not taken it, it is tried again.
  CHECK(scene.round() == Texts{"keep_waiting POWER_UP a-[0-1]"});
  scene.memory.armed[{"a-0"}] = scene.shot.now;
  scene.memory.armed[{"a-1"}] = scene.shot.now;
  CHECK(scene.rounds(9).empty());
  CHECK(scene.round() == Texts{"keep_waiting POWER_UP a-[0-1]"});
}

TEST_CASE("keep_waiting: a node first seen powering up may have been at it for long") {
  Scene scene;
  scene.memory.last_round = {};
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK(scene.round() == Texts{"keep_waiting POWER_UP a-0"});
}

TEST_CASE("keep_waiting: never with a VM, and never where there is no time-out") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{60};
  scene.waiting_job(7, "a-0");
  scene.vms("a-0");
  CHECK(scene.rounds(10).empty());
  Scene other;
  other.shot.settings.resume_timeout_is_infinite = true;
  other.waiting_job(7, "a-0");
  other.asked(7, "a-0");
  CHECK(other.rounds(10).empty());
}

TEST_CASE("keep_waiting: the longest ResumeTimeout of a node's partitions counts") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{60};
  Partition partition;
  partition.nodes = nodes("a", 8);
  partition.resume_timeout = Seconds{10000};
  partition.is_exclusive = true;  // else the node is fenced while it waits
  scene.shot.partitions.items.push_back(partition);
  scene.round();
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK(scene.rounds(100).empty());
}

TEST_CASE(
    "boot_timeout: a VM whose node never registers is deleted with its serial log, then asked for "
    "again") {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.waiting_job(7, "a-[0-1]");
  scene.vms("a-[0-1]");
  scene.state("a-0", kBusy);
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"boot_timeout delete_instances a-1 @hpc-a"});
  CHECK(std::get<DeleteInstances>(scene.actions.front().what).keep_serial_log);
  std::erase_if(scene.owned().instances, [](const Instance& vm) { return vm.name.text == "a-1"; });
  CHECK(scene.rounds(2) == Texts{"unrequested_node ask a-1 job=7"});
}

namespace {

/// One boot that fails, and the next VM.
void fail_boot(Scene& scene, const std::string& id) {
  scene.vms("a-0");
  scene.entry("a-0").id = id;
  scene.rounds(4);
  scene.round();
}

Scene stopped_scene() {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.set().max_boot_failures = 2;
  scene.waiting_job(7, "a-0");
  fail_boot(scene, "1");
  fail_boot(scene, "2");
  return scene;
}

}  // namespace

TEST_CASE("boot_timeout: after max_boot_failures in a row the nodeset is stopped, and says so") {
  Scene scene = stopped_scene();
  REQUIRE(scene.actions.size() == 3);
  CHECK(scene.comment(7) ==
        "flex: nodeset a is stopped: 2 boots in a row failed; the job waits until your admin "
        "starts it again");
  CHECK(std::get<UpdateNodes>(scene.actions[2].what).request == NodeRequest::PowerDownForce);
  scene.no_vms();
  scene.end_job(7);
  scene.state("a-0", kGoing);
  CHECK(scene.round() == Texts{"boot_timeout DRAIN a-[1-7]"});
  const std::string reason = std::get<UpdateNodes>(scene.actions.front().what).reason;
  CHECK_THAT(reason, StartsWith("flex: nodeset a stopped: 2 boots in a row failed"));
  CHECK_THAT(reason, ContainsSubstring("State=UNDRAIN"));
}

TEST_CASE("boot_timeout: a boot in between starts the count anew") {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.set().max_boot_failures = 2;
  scene.waiting_job(7, "a-0");
  fail_boot(scene, "1");
  scene.vms("a-0");
  scene.entry("a-0").id = "2";
  scene.round();
  scene.state("a-0", kBusy);
  scene.round();
  scene.state("a-0", kComingForJob);
  fail_boot(scene, "3");
  CHECK_FALSE(scene.memory.stopped.contains("a"));
}

TEST_CASE(
    "boot_timeout: a stopped nodeset is not asked for, and starts again when an admin undrains a "
    "node") {
  Scene scene = stopped_scene();
  const std::string reason = "flex: nodeset a stopped: 2 boots in a row failed; mend it";
  scene.no_vms();
  scene.end_job(7);
  scene.make_static("a-1");
  scene.state("a-[0-7]", kOff | NODE_STATE_DRAIN);
  for (Node& node : scene.shot.nodes.items) node.reason = reason;
  scene.waiting_job(8, "a-2");
  CHECK(scene.rounds(1) ==
        Texts{"boot_timeout comment job=8", "boot_timeout POWER_DOWN_FORCE a-2"});
  scene.end_job(8);
  scene.state("a-2", kOff | NODE_STATE_DRAIN);
  CHECK(scene.rounds(3).empty());
  scene.state("a-3", kOff);
  CHECK(scene.round() == Texts{"boot_timeout UNDRAIN a-[0-2,4-7]"});
  // Not carried out: it must not be taken for a new stop.
  CHECK(scene.round() == Texts{"boot_timeout UNDRAIN a-[0-2,4-7]"});
  scene.state("a-[0-7]", kOff);
  scene.round();
  CHECK_FALSE(scene.memory.stopped.contains("a"));
}

TEST_CASE("boot_timeout: a stop outlives a loss of memory") {
  Scene scene;
  scene.state("a-0", kOff | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "flex: nodeset a stopped: 3 boots in a row failed";
  CHECK(scene.round() == Texts{"boot_timeout DRAIN a-[1-7]"});
}

TEST_CASE("a node that goes down after its job (PowerDownOnIdle) is asked for and kept waiting") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{60};
  scene.waiting_job(7, "a-0");
  scene.state("a-0", kComingForJob | NODE_STATE_POWER_DOWN);
  CHECK(scene.rounds(2) == Texts{"unrequested_node ask a-0 job=7"});
  scene.asked(7, "a-0");
  CHECK(scene.rounds(2) == Texts{"keep_waiting POWER_UP a-0"});
}

TEST_CASE(
    "unrequested_node: a node powered down by an admin while it comes up for nobody is given "
    "back") {
  Scene scene;
  scene.make_static("a-0");
  scene.state("a-0", kComing | NODE_STATE_POWER_DOWN);
  CHECK(scene.rounds(13) == Texts{"unrequested_node POWER_DOWN_FORCE a-0"});
}

TEST_CASE("a static node that is drained while it waits is left alone, its request too") {
  Scene scene;
  scene.make_static("a-[0-1]");
  scene.state("a-[0-1]", kComing | NODE_STATE_DRAIN);
  scene.asked(0, "a-0");
  CHECK(scene.rounds(30).empty());
}

TEST_CASE("unrequested_node: a name that is just being freed is waited for") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.owned().instances.push_back(deleting({"a-0"}));
  CHECK(scene.rounds(5).empty());
  scene.no_vms();
  CHECK(scene.round() == Texts{"unrequested_node ask a-0 job=7"});
}

TEST_CASE("static_node: one that is off while its request still waits is powered up for it") {
  Scene scene;
  scene.make_static("a-0");
  scene.asked(0, "a-0");
  CHECK(scene.round() == Texts{"static_node POWER_UP a-0"});
}

TEST_CASE("unbacked_node: without any group of the nodeset it looks for longer") {
  Scene scene;
  scene.running_job(7, "a-0");
  CHECK(scene.rounds(20).empty());
  CHECK(scene.round().size() == 3);
}

TEST_CASE("boot_timeout: a VM that never starts has twice the time") {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.waiting_job(7, "a-0");
  scene.vms("a-0");
  scene.entry("a-0").status = InstanceStatus::Staging;
  CHECK(scene.rounds(8).empty());
  CHECK(scene.round() == Texts{"boot_timeout delete_instances a-0 @hpc-a"});
}

TEST_CASE("boot_timeout: a member that waits is no VM, whatever Google says of it") {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.waiting_job(7, "a-[0-3]");
  scene.asked(7, "a-[0-3]");
  for (Instance& entry : scene.owned().instances) entry.status = InstanceStatus::Pending;
  CHECK(scene.rounds(40).empty());
  CHECK(scene.memory.boot_failures.empty());
  // Once they are made, they have their time.
  for (Instance& entry : scene.owned().instances) entry.status = InstanceStatus::Provisioning;
  scene.rounds(10);
  CHECK(scene.memory.boot_failures.at("a").count == 1);
}

TEST_CASE("keep_waiting: PENDING members are waited for") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  for (Instance& entry : scene.owned().instances) entry.status = InstanceStatus::Pending;
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round() == Texts{"keep_waiting POWER_UP a-[0-1]"});
}

TEST_CASE("orphan_instance: one that waited while its node was off is not from before its boot") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  SweptGroup& home = scene.owned();
  home.group.kind = GroupKind::Individual;
  home.instances = {queued({"a-1"})};
  home.instances[0].id = "71";
  CHECK(scene.rounds(2).empty());
  scene.waiting_job(7, "a-1");
  CHECK(scene.rounds(3, Seconds{100}).empty());
  home.instances[0].status = InstanceStatus::Staging;
  CHECK(scene.round().empty());
}

TEST_CASE("bulk_insert: a VM of no group that is PENDING is asked for, not booting") {
  Scene scene;
  scene.set().mode = Mode::BulkInsert;
  scene.set().boot_timeout = Seconds{60};
  scene.waiting_job(7, "a-0");
  SweptGroup& loose = scene.owned("");
  loose.group.kind = GroupKind::Loose;
  loose.instances = {queued({"a-0"})};
  loose.instances[0].status = InstanceStatus::Pending;
  loose.instances[0].url = "https://compute/zones/us-central1-a/instances/a-0";
  CHECK(scene.rounds(20).empty());
  // The job is gone: the node goes back, and then the VM.
  scene.end_job(7);
  scene.state("a-0", kComing);
  scene.rounds(2);
  CHECK(scene.round(Seconds{180}) == Texts{"stale_request POWER_DOWN_FORCE a-0"});
  scene.state("a-0", kOff);
  scene.rounds(2);
  CHECK(scene.round(Seconds{180}) == Texts{"orphan_instance delete_instances a-0"});
}

TEST_CASE("boot_timeout: VMs of one wave are one failure, and without a deletion there is none") {
  Scene scene;
  scene.set().boot_timeout = Seconds{60};
  scene.waiting_job(7, "a-[0-2]");
  scene.vms("a-0");
  scene.round();
  scene.vms("a-[0-1]");
  scene.round();
  scene.vms("a-[0-2]");
  scene.rounds(5);
  CHECK(scene.memory.boot_failures.at("a").count == 1);
  Scene poor;
  poor.settings.sweeper.max_deletes_per_round = 0;
  poor.set().boot_timeout = Seconds{60};
  poor.set().max_boot_failures = 1;
  poor.waiting_job(7, "a-0");
  poor.vms("a-0");
  CHECK(poor.rounds(20).empty());
}

TEST_CASE("a clock that was set back does not stop anything") {
  Scene scene;
  scene.make_static("a-0");
  scene.round();
  scene.waiting_job(7, "a-1");
  scene.memory.retries[{"a-1"}] = {
      .attempts = 1, .refusals = 0, .next = scene.shot.now + Seconds{9999}, .why = "x"};
  scene.shot.now -= Seconds{5000};
  const Texts texts = scene.rounds(2);
  CHECK(std::count(texts.begin(), texts.end(), "unrequested_node ask a-1 job=7") == 1);
}

TEST_CASE(
    "keep_waiting: while Google cannot be seen, with its last picture, and nothing else is done") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  scene.running_job(8, "a-1");
  scene.waiting_job(9, "a-2");
  scene.round();
  scene.shot.now += Seconds{50};
  CHECK(decide_blindly(scene.settings, scene.shot, scene.memory).actions.empty());
  scene.shot.now += Seconds{30};
  const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
  REQUIRE(actions.size() == 1);
  CHECK(actions[0].rule == Rule::KeepWaiting);
  // The one that waits for its request, and the one of which nothing was known but that it waits.
  CHECK(nodes_of(actions[0]) == std::vector<NodeName>{{"a-0"}, {"a-2"}});
}

TEST_CASE("keep_waiting: a node that began while its nodeset could not be seen is kept, too") {
  Scene scene;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.round();
  scene.shot.seen_once.insert("a");
  scene.shot.unseen.emplace("a", Error{ErrorKind::Retry, "503"});
  scene.waiting_job(7, "a-0").start_time = scene.shot.now;
  scene.shot.now += Seconds{50};
  // A round that saw only other nodesets says nothing of this one's nodes.
  scene.memory.last_round = scene.shot.now;
  CHECK(decide_blindly(scene.settings, scene.shot, scene.memory).actions.empty());
  scene.shot.now += Seconds{30};
  scene.memory.last_round = scene.shot.now;
  const auto actions = decide_blindly(scene.settings, scene.shot, scene.memory).actions;
  REQUIRE(actions.size() == 1);
  CHECK(nodes_of(actions[0]) == nodes("a", 1));
}
