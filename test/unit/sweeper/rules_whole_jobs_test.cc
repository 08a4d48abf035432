// SPDX-License-Identifier: GPL-2.0-or-later
// One request for all that a job lacks, long enough for all jobs on its nodes; jobs that have only
// a part of their VMs.
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <chrono>

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

const AskForNodes* ask_in(const Scene& scene) {
  for (const Action& action : scene.actions) {
    if (const auto* ask = std::get_if<AskForNodes>(&action.what)) return ask;
  }
  return nullptr;
}

/// A job that waits, in a partition whose nodes jobs may share.
void share(Scene& scene) {
  Partition partition;
  partition.name = "shared";
  partition.nodes = scene.set().nodes;
  scene.shot.partitions.items.push_back(partition);
}

/// What the rules do about jobs and requests: without the reservations.
Texts quiet(Texts texts) {
  std::erase_if(texts, [](const std::string& text) { return text.starts_with("lease_end "); });
  return texts;
}

/// VMs that have come for the job now, and have all the time to boot.
void came(Scene& scene, const std::string& hostlist, Seconds run) {
  scene.set().boot_timeout = 7h;
  scene.vms(hostlist);
  for (const NodeName& name : names_in(hostlist))
    scene.entry(name.text).terminates = scene.shot.now + run;
}

}  // namespace

// ---- one request for a job ----

TEST_CASE("stale_request: a part of what another job needs is not inherited") {
  Scene scene;
  scene.waiting_job(8, "a-[0-3]");
  scene.asked(7, "a-[0-1]");
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"stale_request cancel_request a-[0-1] @hpc-a/j7-x job=7"});
}

TEST_CASE("stale_request: exactly what another job needs is inherited") {
  Scene scene;
  scene.waiting_job(8, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  CHECK(scene.rounds(4).empty());
}

TEST_CASE("stale_request: what lives too short for the job on its nodes is not inherited") {
  Scene scene;
  scene.waiting_job(8, "a-[0-1]", 2h);
  scene.asked(7, "a-[0-1]");
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-[0-1] @hpc-a/j7-x job=7"});
}

TEST_CASE("stale_request: two jobs do not share the request of one that is gone") {
  Scene scene;
  scene.waiting_job(8, "a-[0-1]");
  scene.waiting_job(9, "a-[2-3]");
  scene.asked(7, "a-[0-3]");
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-[0-3] @hpc-a/j7-x job=7"});
}

TEST_CASE("stale_request: a request that lacks a node of its own job is made anew") {
  Scene scene;
  scene.waiting_job(7, "a-[0-2]");
  came(scene, "a-0", 75min);
  scene.asked(7, "a-1");
  CHECK(quiet(scene.rounds(2)) == Texts{"stale_request cancel_request a-1 @hpc-a/j7-x job=7"});
  scene.owned().requests.clear();
  std::erase_if(scene.owned().instances, [](const Instance& one) { return one.is_queued(); });
  scene.rounds(2);
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  REQUIRE(ask->plan.groups.size() == 1);
  REQUIRE(ask->plan.groups[0].requests.size() == 1);
  CHECK(ask->plan.groups[0].requests[0].spec.nodes == names_in("a-[1-2]"));
}

TEST_CASE("stale_request: what has a VM, is static or another job's needs no place in it") {
  Scene scene;
  scene.make_static("a-7");
  scene.waiting_job(7, "a-[0-2],a-7");
  came(scene, "a-0", 75min);
  scene.asked(7, "a-1");
  scene.shot.jobs.items.push_back(job(8, names_in("a-2"), 1h));
  scene.asked(8, "a-2");
  scene.asked(0, "a-7").run_duration = 168h;
  CHECK(quiet(scene.rounds(3)).empty());
}

TEST_CASE("stale_request: a static node's request is judged by itself, whoever it was made for") {
  Scene scene;
  scene.settings.places[{"a-0"}].is_static = true;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-0").run_duration = kMaxRunDuration;
  ResizeRequest second = scene.asked(7, "a-1");
  second.name.text += "2";
  CHECK(quiet(scene.rounds(4)).empty());
}

TEST_CASE("stale_request: of two jobs on a node the first asks for it, the other's may lack it") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.waiting_job(8, "a-[1-2]");
  scene.asked(8, "a-2");
  // Job 7 has not asked yet: job 8's request is right without the node that they share.
  CHECK(quiet(scene.round()).empty());
  const Texts asked = quiet(scene.round());
  CHECK(asked == Texts{"unrequested_node ask a-[0-1] job=7"});
}

TEST_CASE("stale_request: one that is being served is left alone") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  scene.asked(7, "a-[0-3]", RequestState::Provisioning);
  came(scene, "a-[0-1]", 75min);
  CHECK(quiet(scene.rounds(4)).empty());
}

TEST_CASE("unrequested_node: not while a part of the job is in a request that goes first") {
  Scene scene;
  scene.waiting_job(8, "a-[0-3]");
  scene.asked(7, "a-[0-1]", RequestState::Creating);
  CHECK(quiet(scene.rounds(4)).empty());
  CHECK(ask_in(scene) == nullptr);
  scene.no_vms();
  scene.owned().requests.clear();
  scene.rounds(2);
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  CHECK(ask->plan.groups[0].requests[0].spec.nodes == names_in("a-[0-3]"));
}

TEST_CASE("unrequested_node: waits for nodes of the job that slurmctld has yet to wake") {
  Scene scene;
  scene.waiting_job(8, "a-[0-3]");
  scene.state("a-3", NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN);
  CHECK(quiet(scene.rounds(3)).empty());
  scene.state("a-3", kComingForJob);
  CHECK(quiet(scene.rounds(2)) == Texts{"unrequested_node ask a-[0-3] job=8"});
}

// ---- long enough ----

TEST_CASE("resubmit: a request that is too short for its job now is renewed, and that is told") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]", 10h);
  scene.asked(7, "a-[0-1]");
  const Texts texts = scene.round();
  CHECK(texts == Texts{"resubmit comment job=7", "resubmit ask a-[0-1] job=7"});
  CHECK(scene.comment(7).find("10:15:00 instead of 01:15:00") != std::string::npos);
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  CHECK(ask->plan.groups[0].spec.name.text == "hpc-a-r");
  CHECK(ask->plan.groups[0].requests[0].spec.run_duration == 10h + 15min);
  CHECK(ask->plan.groups[0].requests[0].way.renewed == 1);
  // Told once.
  CHECK(quiet(scene.round()) == Texts{"resubmit ask a-[0-1] job=7"});
}

TEST_CASE("resubmit: not for a lowered limit, nor beyond what the nodeset allows") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]", 10min);
  scene.asked(7, "a-[0-1]");
  CHECK(quiet(scene.rounds(3)).empty());
  scene.shot.jobs.items[0].time_limit = 10h;
  scene.set().dws_flex.max_run_duration = 75min;
  CHECK(quiet(scene.rounds(3)).empty());
}

TEST_CASE("resubmit: a request is long enough for all jobs on its nodes, and stays one") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  CHECK(quiet(scene.rounds(2)).empty());
  scene.shot.jobs.items.push_back(job(8, names_in("a-1"), 10h));
  scene.round();
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  REQUIRE(ask->plan.groups.size() == 1);
  REQUIRE(ask->plan.groups[0].requests.size() == 1);
  CHECK(ask->plan.groups[0].requests[0].spec.nodes == names_in("a-[0-1]"));
  CHECK(ask->plan.groups[0].requests[0].spec.run_duration == 10h + 15min);
  CHECK(ask->plan.groups[0].requests[0].job == 7);
}

TEST_CASE("lease_end: shared nodes that wait for a VM are fenced, in steps") {
  Scene scene;
  share(scene);
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  int changes = 0;
  // Half an hour, round by round.
  for (int i = 0; i < 120; ++i) {
    for (const Action& action : scene.raw_round()) {
      const auto* set = std::get_if<SetReservation>(&action.what);
      if (set == nullptr) continue;
      ++changes;
      // A job as long as the one that waits still fits.
      CHECK(set->reservation.start >= scene.shot.now + 1h);
      CHECK(set->reservation.start <= scene.shot.now + 75min);
      CHECK(set->reservation.nodes == names_in("a-0"));
      scene.shot.reservations.items = {set->reservation};
    }
  }
  CHECK(changes >= 2);
  // Steps of 13 minutes: what is left of the margin beside the 90 s before the VM's end.
  CHECK(changes <= 4);
}

TEST_CASE("lease_end: the fence stays until the VM says when it ends") {
  Scene scene;
  share(scene);
  scene.waiting_job(7, "a-0");
  ResizeRequest& request = scene.asked(7, "a-0");
  const auto fences = [&] {
    auto& items = scene.shot.reservations.items;
    const auto drop = [&](const std::string& name) {
      std::erase_if(items, [&](const Reservation& one) { return one.name == name; });
    };
    for (const Action& action : scene.raw_round()) {
      if (const auto* set = std::get_if<SetReservation>(&action.what)) {
        drop(set->reservation.name);
        items.push_back(set->reservation);
      } else if (const auto* gone = std::get_if<DeleteReservation>(&action.what)) {
        drop(gone->name);
      }
    }
    return items.size();
  };
  CHECK(fences() == 1);
  request.state = RequestState::Succeeded;
  scene.vms("a-0");
  scene.entry("a-0").terminates.reset();
  REQUIRE(fences() == 1);
  CHECK(scene.shot.reservations.items[0].start <= scene.shot.now + 75min);
  scene.entry("a-0").terminates = scene.shot.now + 70min;
  REQUIRE(fences() == 1);
  CHECK(scene.shot.reservations.items[0].start <= scene.shot.now + 70min);
}

TEST_CASE("surplus_request: of two jobs' requests for a shared node the younger goes") {
  Scene scene;
  share(scene);
  scene.waiting_job(7, "a-0");
  scene.waiting_job(8, "a-[0-1]");
  scene.asked(7, "a-0");
  ResizeRequest& younger = scene.asked(8, "a-[0-1]");
  younger.created += 2s;
  CHECK(quiet(scene.round()) == Texts{"surplus_request cancel_request a-[0-1] @hpc-a/j8-x job=8"});
  // What it then lacks is asked for without the other's node.
  scene.owned().requests.pop_back();
  std::erase_if(scene.owned().instances,
                [](const Instance& entry) { return entry.name.text == "a-1"; });
  CHECK(quiet(scene.rounds(2)) == Texts{"unrequested_node ask a-1 job=8"});
}

TEST_CASE("surplus_request: one that is being served stays; a gone job's does not count") {
  Scene scene;
  share(scene);
  scene.waiting_job(7, "a-0");
  scene.waiting_job(8, "a-[0-1]");
  scene.asked(7, "a-0");
  ResizeRequest& younger = scene.asked(8, "a-[0-1]", RequestState::Provisioning);
  younger.created += 2s;
  CHECK(quiet(scene.round()) == Texts{"surplus_request cancel_request a-0 @hpc-a/j7-x job=7"});
  younger.state = RequestState::Accepted;
  scene.end_job(7);
  for (const std::string& text : quiet(scene.rounds(2)))
    CHECK(text.find("j8-x") == std::string::npos);
}

TEST_CASE("job_note: a raised time limit can be read for as long as the job waits") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]", 10h);
  scene.asked(7, "a-[0-1]");
  scene.raw_round();
  CHECK(scene.comment(7).find("10:15:00 instead of 01:15:00") != std::string::npos);
  const AskForNodes* ask = ask_in(scene);
  REQUIRE(ask != nullptr);
  const std::string description = ask->plan.groups[0].requests[0].spec.description;
  scene.shot.jobs.items[0].admin_comment = scene.comment(7);
  // The next note says how it stands, and this, too.
  scene.raw_round(2min);
  CHECK(scene.comment(7).find("waiting for 2 VMs") != std::string::npos);
  CHECK(scene.comment(7).find("10:15:00 instead of 01:15:00") != std::string::npos);
  // And when the new request has taken the old one's place.
  ResizeRequest& request = scene.owned().requests[0];
  request.description = description;
  request.run_duration = 10h + 15min;
  scene.shot.jobs.items[0].admin_comment = {};
  scene.raw_round(2min);
  CHECK(scene.comment(7).find("waiting for 2 VMs") != std::string::npos);
  CHECK(scene.comment(7).find("10:15:00 instead of 01:15:00") != std::string::npos);
}

TEST_CASE("job_note: VMs that end before a limit that was raised while they boot") {
  const Utc utc;
  Scene scene;
  Job& waiting = scene.waiting_job(7, "a-0");
  waiting.is_batch = waiting.may_requeue = true;
  scene.asked(7, "a-0", RequestState::Succeeded);
  came(scene, "a-0", 75min);
  scene.raw_round();
  CHECK(scene.comment(7).starts_with("flex: VMs end "));
  CHECK(scene.comment(7).find("before") == std::string::npos);
  scene.shot.jobs.items[0].admin_comment = scene.comment(7);
  scene.shot.jobs.items[0].time_limit = 10h;
  scene.raw_round(2min);
  CHECK(scene.comment(7).find(
            "before the job's time limit of 10:00:00 is over: it will be requeued") !=
        std::string::npos);
}

TEST_CASE("lease_end: nodes of an exclusive partition that wait for a VM need no fence") {
  Scene scene;
  share(scene);
  scene.shot.partitions.items[0].is_exclusive = true;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK(scene.rounds(3).empty());
}

// ---- a part of the VMs ----

TEST_CASE("incomplete_job: after incomplete_timeout all VMs go back, and the job stays") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  came(scene, "a-[0-2]", 75min);
  scene.asked(7, "a-3");
  CHECK(quiet(scene.rounds(40)).empty());
  CHECK(quiet(scene.round()) == Texts{"incomplete_job cancel_request a-3 @hpc-a/j7-x job=7"});
  // Nothing goes before it is certain that the request was not served.
  scene.owned().requests.clear();
  CHECK(quiet(scene.round()) ==
        Texts{"incomplete_job comment job=7", "incomplete_job delete_instances a-[0-2] @hpc-a"});
  CHECK(scene.comment(7).find("only 3 of 4 VMs came within incomplete_timeout 00:10:00") !=
        std::string::npos);
}

TEST_CASE("incomplete_job: a job with nodes that have registered is requeued") {
  Scene scene;
  Job& waiting = scene.waiting_job(7, "a-[0-3]");
  waiting.is_batch = waiting.may_requeue = true;
  came(scene, "a-[0-2]", 75min);
  scene.state("a-1", kBusy);
  scene.asked(7, "a-3");
  CHECK(quiet(scene.rounds(40)).empty());
  CHECK(quiet(scene.round()) == Texts{"incomplete_job cancel_request a-3 @hpc-a/j7-x job=7"});
  scene.owned().requests.clear();
  CHECK(quiet(scene.round()) == Texts{"incomplete_job comment job=7",
                                      "incomplete_job requeue a-[0-3] job=7",
                                      "incomplete_job POWER_DOWN_FORCE a-[0-3]"});
}

TEST_CASE("incomplete_job: what cannot be requeued keeps its registered nodes") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]").may_requeue = false;
  came(scene, "a-[0-2]", 75min);
  scene.state("a-1", kBusy);
  scene.asked(7, "a-3");
  CHECK(quiet(scene.rounds(45)).empty());
}

TEST_CASE("incomplete_job: not with a limit of 0, nor where VMs come one by one") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  came(scene, "a-[0-2]", 75min);
  scene.asked(7, "a-3");
  scene.set().incomplete_timeout = 0s;
  CHECK(quiet(scene.rounds(60)).empty());
  scene.set().incomplete_timeout = 10min;
  scene.set().mode = Mode::Individual;
  CHECK(quiet(scene.rounds(60)).empty());
}

/// Nodeset b beside a, with a node that the job waits for in a request of its own.
void add_second_nodeset(Scene& scene, Seconds timeout) {
  NodesetConfig second = nodeset("b", nodes("b", 1));
  second.incomplete_timeout = timeout;
  scene.settings = config({scene.set(), second});
  scene.settings.sweeper.interval = 15s;
  scene.shot.seen_once = {"a", "b"};
  Node& node = scene.shot.nodes.items.emplace_back();
  node.name = {"b-0"};
  node.state = kComingForJob;
  ResizeRequest waiting = request("j7-y", RequestState::Accepted, names_in("b-0"));
  waiting.group = {"hpc-b"};
  waiting.description = request_description(7, waiting.nodes);
  waiting.created = scene.shot.now;
  waiting.run_duration = 75min;
  SweptGroup& home = scene.owned("hpc-b", "b");
  home.instances.push_back(queued({"b-0"}));
  home.requests.push_back(waiting);
}

TEST_CASE("incomplete_job: VMs of one nodeset do not wait for ever for those of another") {
  Scene scene;
  Job waiting = job(7, names_in("a-[0-1],b-0"), 1h);
  waiting.is_batch = waiting.may_requeue = true;
  scene.state("a-[0-1]", kComingForJob);
  came(scene, "a-[0-1]", 75min);
  SECTION("the request of the rest keeps its place") {
    add_second_nodeset(scene, 12min);
    scene.shot.jobs.items.push_back(waiting);
    CHECK(quiet(scene.rounds(48)).empty());
    CHECK(quiet(scene.round()) ==
          Texts{"incomplete_job comment job=7", "incomplete_job delete_instances a-[0-1] @hpc-a"});
  }
  SECTION("not while it is just being served") {
    add_second_nodeset(scene, 10min);
    scene.shot.jobs.items.push_back(waiting);
    scene.owned("hpc-b", "b").requests[0].state = RequestState::Provisioning;
    CHECK(quiet(scene.rounds(50)).empty());
  }
  SECTION("a job that has registered nodes is requeued") {
    add_second_nodeset(scene, 10min);
    scene.shot.jobs.items.push_back(waiting);
    scene.state("a-0", kBusy);
    CHECK(quiet(scene.rounds(40)).empty());
    CHECK(quiet(scene.round()) == Texts{"incomplete_job cancel_request b-0 @hpc-b/j7-y job=7"});
    scene.owned("hpc-b", "b").requests.clear();
    CHECK(quiet(scene.round()) == Texts{"incomplete_job comment job=7",
                                        "incomplete_job requeue a-[0-1],b-0 job=7",
                                        "incomplete_job POWER_DOWN_FORCE a-[0-1],b-0"});
  }
  SECTION("for ever") {
    add_second_nodeset(scene, 0s);
    scene.shot.jobs.items.push_back(waiting);
    CHECK(quiet(scene.rounds(59)).empty());
  }
}

TEST_CASE("incomplete_job: nor for a node that another job shares and has asked for") {
  Scene scene;
  Job& waiting = scene.waiting_job(7, "a-[0-1]");
  waiting.is_batch = waiting.may_requeue = true;
  came(scene, "a-0", 75min);
  scene.shot.jobs.items.push_back(job(8, names_in("a-[1-2]"), 1h));
  scene.state("a-2", kComingForJob);
  scene.asked(8, "a-[1-2]");
  SECTION("it is requeued; what is the other job's stays") {
    CHECK(quiet(scene.rounds(40)).empty());
    CHECK(quiet(scene.round()) == Texts{"incomplete_job comment job=7",
                                        "incomplete_job requeue a-[0-1] job=7",
                                        "incomplete_job POWER_DOWN_FORCE a-0"});
  }
  SECTION("what cannot be requeued keeps what it has") {
    scene.shot.jobs.items[0].may_requeue = false;
    CHECK(quiet(scene.rounds(59)).empty());
  }
}

TEST_CASE("incomplete_job: VMs that end before the job's time limit go at once") {
  Scene scene;
  scene.waiting_job(8, "a-[0-3]", 10h).start_time = scene.shot.now;
  came(scene, "a-[0-1]", 20min);
  scene.asked(8, "a-[2-3]").run_duration = 10h + 15min;
  CHECK(quiet(scene.round()).empty());
  CHECK(quiet(scene.round()) == Texts{"incomplete_job cancel_request a-[2-3] @hpc-a/j8-x job=8"});
  scene.owned().requests.clear();
  CHECK(quiet(scene.round()) ==
        Texts{"incomplete_job comment job=8", "incomplete_job delete_instances a-[0-1] @hpc-a"});
}

TEST_CASE("incomplete_job: a VM that was made for the job is long enough, however slow it boots") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]").start_time = scene.shot.now;
  came(scene, "a-[0-1]", 75min);
  scene.set().boot_timeout = 7h;
  CHECK(quiet(scene.rounds(200)).empty());
}

TEST_CASE("incomplete_job: VMs of a shorter job that is gone are replaced before they register") {
  Scene scene;
  scene.waiting_job(8, "a-[0-1]", 10h).start_time = scene.shot.now;
  came(scene, "a-[0-1]", 20min);
  CHECK(quiet(scene.round()).empty());
  CHECK(quiet(scene.round()) ==
        Texts{"incomplete_job comment job=8", "incomplete_job delete_instances a-[0-1] @hpc-a"});
  // A raised time limit does not cost a job the VMs that came for it.
  scene.asked(8, "a-[0-1]", RequestState::Succeeded);
  CHECK(quiet(scene.rounds(3)).empty());
}
