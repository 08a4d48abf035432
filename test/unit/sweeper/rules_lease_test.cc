// SPDX-License-Identifier: GPL-2.0-or-later
// Rule lease_end: warnings, the drain at the end, VMs of exclusive partitions.
#include "lib/core/job_note.h"
#include "sweeper/lease.h"
#include "test/unit/sweeper/leases.h"

#include <csignal>
#include <cstdlib>
#include <ctime>

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

/// 2027-01-15T08:00:00Z is the scene's time.
const Utc kUtc;

}  // namespace

// ---- warnings ----

TEST_CASE("lease_end: a job that outlives its VMs is warned once, in time") {
  Leases scene;
  scene.at_work(7, "a-[0-1]", 1h, 2h);
  scene.play();
  scene.play(49min);
  CHECK(scene.warning(7) == nullptr);
  CHECK(scene.play(1min) == Texts{"lease_end warn_job job=7"});
  const WarnJob warn = *scene.warning(7);
  CHECK(warn.signal == SIGURG);
  CHECK(warn.line ==
        "flex: the VMs of this job end at 2027-01-15T09:00, in 10 minutes; it will be requeued "
        "then: save your work now");
  CHECK(warn.comment ==
        "flex: warned: VMs end 2027-01-15T09:00, it will be requeued then; checkpoint now");
  for (int i = 0; i < 20; ++i) {
    CHECK(scene.play().empty());
    CHECK(scene.comment(7).empty());
  }
}

TEST_CASE("lease_end: without memory the comment says that it has been warned") {
  Leases scene;
  scene.at_work(7, "a-0", 1h, 2h).admin_comment = "ticket 12";
  scene.play();
  scene.play(51min);
  CHECK(scene.warning(7)->comment ==
        "ticket 12 | flex: warned: VMs end 2027-01-15T09:00, it will be requeued then; checkpoint "
        "now");
  scene.memory = {};
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: an admin who rewrites the comment does not make it warn again") {
  Leases scene;
  scene.at_work(7, "a-0", 1h, 2h);
  scene.play();
  scene.play(51min);
  scene.shot.jobs.items[0].admin_comment = "other";
  scene.play();
  CHECK(scene.warning(7) == nullptr);
  // In its next life it has other VMs.
  scene.shot.jobs.items[0].restart_count = 1;
  scene.play();
  CHECK(scene.warning(7) != nullptr);
}

TEST_CASE("lease_end: who ends before, waits, is suspended or over is not warned") {
  Leases scene;
  scene.at_work(7, "a-0", 5min, 5min);
  scene.at_work(8, "a-1", 5min, 1h).is_configuring = true;
  Job& suspended = scene.at_work(9, "a-2", 5min, 1h);
  suspended.is_running = false;
  scene.at_work(10, "a-3", 5min, 1h);
  scene.end_job(10);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-[0-3] @flex-eol-20270115T0803"});
  // Told how it stands, though, and warned as soon as it could listen.
  CHECK_THAT(scene.comment(9), StartsWith("flex: VMs end 2027-01-15T08:05, before the job's time"));
  scene.shot.jobs.items[2].is_running = true;
  CHECK(scene.play() == Texts{"lease_end warn_job job=9"});
}

TEST_CASE("lease_end: lease_warning 0 warns nobody, lease_signal none sends nothing") {
  Leases scene;
  scene.at_work(7, "a-0", 5min, 1h);
  scene.set().lease_signal = 0;
  scene.play();
  REQUIRE(scene.warning(7) != nullptr);
  CHECK(scene.warning(7)->signal == 0);
  Leases silent;
  silent.set().lease_warning = 0s;
  silent.at_work(7, "a-0", 5min, 1h);
  silent.play();
  CHECK(silent.warning(7) == nullptr);
  CHECK_THAT(silent.comment(7), StartsWith("flex: VMs end 2027-01-15T08:05, before"));
}

TEST_CASE("lease_end: a job without a time limit is warned, one without requeue told its end") {
  Leases scene;
  Job& endless = scene.at_work(7, "a-0", 5min, 1h);
  endless.time_limit.reset();
  scene.at_work(8, "a-1", 5min, 1h).may_requeue = false;
  scene.play();
  CHECK(scene.warning(7) != nullptr);
  CHECK_THAT(scene.warning(8)->line, ContainsSubstring("it ends then"));
}

TEST_CASE("lease_end: all parts of a heterogeneous job are warned by the first VM that ends") {
  Leases scene;
  scene.at_work(7, "a-0", 5h, 2h);
  scene.at_work(8, "a-1", 5min, 2h);
  for (Job& job : scene.shot.jobs.items) job.het_job_id = 7;
  scene.play();
  CHECK(scene.warning(7) != nullptr);
  CHECK(scene.warning(7)->ends == scene.start + 5min);
  CHECK(scene.warning(7)->signal == SIGURG);
  // The leader's signal is for all, and so is its output.
  REQUIRE(scene.warning(8) != nullptr);
  CHECK(scene.warning(8)->signal == 0);
  CHECK(scene.warning(8)->line.empty());
}

TEST_CASE("lease_end: a part whose leader ends before is warned itself") {
  Leases scene;
  scene.at_work(7, "a-0", 5h, 2min);
  scene.at_work(8, "a-1", 5min, 2h);
  for (Job& job : scene.shot.jobs.items) job.het_job_id = 7;
  scene.play();
  CHECK(scene.warning(7) == nullptr);
  REQUIRE(scene.warning(8) != nullptr);
  CHECK(scene.warning(8)->signal == SIGURG);
}

TEST_CASE("lease_end: the tasks of an array are warned each by its own VMs") {
  Leases scene;
  scene.at_work(7, "a-0", 5h, 2h);
  scene.at_work(8, "a-1", 5min, 2h);
  for (Job& job : scene.shot.jobs.items) job.array_job_id = 7;
  scene.play();
  CHECK(scene.warning(7) == nullptr);
  CHECK(scene.warning(8) != nullptr);
}

TEST_CASE("job_note: a time limit that is raised beyond the VMs' end is told, and taken back") {
  Leases scene;
  Job& job = scene.at_work(7, "a-0", 3h, 2h);
  scene.play();
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T11:00");
  job.time_limit = 4h;
  job.end_time = scene.start + 4h;
  scene.play(2min);
  CHECK(scene.comment(7) ==
        "flex: VMs end 2027-01-15T11:00, before the job's time limit 2027-01-15T12:00: it will be "
        "requeued then; checkpoint before");
  job.time_limit.reset();
  scene.play(2min);
  CHECK(scene.comment(7) ==
        "flex: VMs end 2027-01-15T11:00, and the job has no time limit: it will be requeued then; "
        "checkpoint before");
  job.time_limit = 1h;
  job.end_time = scene.start + 1h;
  scene.play(2min);
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T11:00");
}

TEST_CASE("job_note: that the VMs end before the job does is told at once") {
  Leases scene;
  Job& job = scene.at_work(7, "a-0", 3h, 2h);
  job.admin_comment = "flex: VMs end 2027-01-15T11:00";
  scene.memory.notes[7] = scene.shot.now;
  job.time_limit = 4h;
  SECTION("while it runs") {
    job.end_time = scene.start + 4h;
  }
  SECTION("before it begins") {
    job.is_configuring = true;
  }
  scene.play(1s);
  CHECK_THAT(scene.comment(7), ContainsSubstring(", before the job's time limit "));
}

TEST_CASE("job_note: a job that has yet to begin is told of VMs that are too short for it") {
  Leases scene;
  Job& job = scene.at_work(7, "a-0", 3h, 2h);
  job.is_configuring = true;
  scene.play();
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T11:00");
  job.time_limit = 4h;
  scene.play(2min);
  CHECK(scene.comment(7) ==
        "flex: VMs end 2027-01-15T11:00, before the job's time limit of 04:00:00 is over: it will "
        "be requeued then; checkpoint before");
  job.time_limit.reset();
  scene.play(2min);
  CHECK(scene.comment(7) ==
        "flex: VMs end 2027-01-15T11:00, and the job has no time limit: it will be requeued then; "
        "checkpoint before");
}

// ---- the drain at the end ----

TEST_CASE("lease_end: how long before the end depends on the interval, and is never long") {
  Config settings;
  settings.sweeper.interval = 15s;
  CHECK(drain_lead(settings) == 60s);
  settings.sweeper.interval = 1s;
  CHECK(drain_lead(settings) == 4s);
  settings.sweeper.interval = 2min;
  CHECK(drain_lead(settings) == 4min);
}

TEST_CASE("lease_end: a node is drained just before its VM ends, with or without a job") {
  Leases scene;
  scene.at_work(7, "a-0", 1h, 1h);
  scene.up("a-1", 1h);
  scene.play();
  scene.play(50min);
  CHECK(scene.play(8min).empty());
  CHECK(scene.play(1min) == Texts{"lease_end DRAIN a-[0-1]"});
  CHECK(std::get<UpdateNodes>(scene.actions[0].what).reason == "flex: lease ends 2027-01-15T09:00");
}

TEST_CASE("lease_end: an admin's drain, a node that is down, booting or on its way is left alone") {
  Leases scene;
  scene.up("a-[0-3]", 1min);
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "fan";
  scene.state("a-1", NODE_STATE_DOWN | NODE_STATE_CLOUD);
  scene.state("a-2", kComingForJob);
  scene.state("a-3", kIdle | NODE_STATE_POWER_DOWN);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-[0-3] @flex-eol-20270115T0759"});
}

TEST_CASE("lease_end: our drain goes when the VM has gone, an admin's stays") {
  Leases scene;
  scene.state("a-[0-2]", kOff | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "flex: lease ends 2027-01-15T08:00";
  scene.node("a-1").reason = "fan";
  scene.node("a-2").reason = "flex: lease ends 2027-01-15T08:00";
  scene.state("a-2", kGoing | NODE_STATE_DRAIN);
  CHECK(scene.play() == Texts{"lease_end UNDRAIN a-0"});
}

TEST_CASE("lease_end: our drain goes when the node has a VM that ends later") {
  Leases scene;
  scene.up("a-[0-1]", 1min);
  scene.state("a-[0-1]", kIdle | NODE_STATE_DRAIN);
  for (const char* name : {"a-0", "a-1"}) scene.node(name).reason = "flex: lease ends x";
  scene.play();
  CHECK(scene.play().empty());
  scene.up("a-0", 10h);
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.entry("a-1").status = InstanceStatus::Stopping;
  const Texts texts = scene.play();
  CHECK(std::count(texts.begin(), texts.end(), "lease_end UNDRAIN a-0") == 1);
  CHECK(std::count(texts.begin(), texts.end(), "lease_end UNDRAIN a-1") == 0);
}

TEST_CASE("unbacked_node: after the lease one sighting is enough, if the group is listed") {
  Leases scene;
  SECTION("gone at its end") {
    scene.at_work(7, "a-0", 20s, 1h);
    scene.play();
    scene.state("a-0", kBusy | NODE_STATE_DRAIN);
    scene.node("a-0").reason = "flex: lease ends 2027-01-15T08:00";
    scene.no_vms();
    CHECK(scene.play() == Texts{"unbacked_node comment job=7",
                                "unbacked_node DOWN a-0",
                                "unbacked_node POWER_DOWN a-0"});
    CHECK(scene.memory.drains.empty());
    scene.state("a-0", kGoing);
    CHECK(scene.play() == Texts{"lease_end delete_reservation @flex-eol-20270115T0758"});
  }
  SECTION("not without its group") {
    scene.at_work(7, "a-0", 20s, 1h);
    scene.play();
    scene.shot.groups.clear();
    CHECK(scene.play().empty());
  }
  SECTION("not before the end") {
    scene.at_work(7, "a-0", 10min, 5min);
    scene.play();
    scene.no_vms();
    CHECK(scene.play().empty());
  }
}

TEST_CASE("unbacked_node: a job whose time was over when its VM went is slurmctld's to end") {
  Leases scene;
  Job& job = scene.at_work(7, "a-0", 1h, 1h);
  job.end_time = scene.start + 20min;
  scene.play();
  scene.play(20min);
  scene.no_vms();
  SECTION("it does so within its tick") {
    CHECK(scene.play().empty());
    CHECK(scene.play().empty());
    scene.end_job(7);
    scene.state("a-0", kBusy | NODE_STATE_COMPLETING);
    CHECK(scene.play() == Texts{"unbacked_node DOWN a-0", "unbacked_node POWER_DOWN a-0"});
  }
  SECTION("it does not: the job is cancelled") {
    scene.play();
    CHECK(scene.play().empty());
    CHECK(scene.play() == Texts{"unbacked_node comment job=7",
                                "unbacked_node cancel_job a-0 job=7",
                                "unbacked_node DOWN a-0",
                                "unbacked_node POWER_DOWN a-0"});
    CHECK(scene.comment(7) == "flex: lost a-0 after its time limit: the job is over");
  }
  SECTION("OverTimeLimit is so long that slurmctld would requeue it before") {
    scene.shot.settings.over_time_limit = 1h;
    scene.play();
    CHECK(scene.play() == Texts{"unbacked_node comment job=7",
                                "unbacked_node cancel_job a-0 job=7",
                                "unbacked_node DOWN a-0",
                                "unbacked_node POWER_DOWN a-0"});
  }
  SECTION("its limit is raised: it is requeued") {
    job.end_time = scene.start + 40min;
    scene.play();
    CHECK(scene.play() == Texts{"unbacked_node comment job=7",
                                "unbacked_node DOWN a-0",
                                "unbacked_node POWER_DOWN a-0"});
    CHECK(scene.comment(7) == "flex: lost a-0: its VM is gone; back in the queue");
  }
}

TEST_CASE("unbacked_node: a node that an admin drained beside us is drained again when it is off") {
  Leases scene;
  scene.up("a-0", 20s);
  scene.play();
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  scene.node("a-0").reason = "fan";
  scene.no_vms();
  CHECK(scene.play() == Texts{"unbacked_node POWER_DOWN_FORCE a-0"});
  CHECK(scene.memory.drains.at({"a-0"}) == "fan");
}

TEST_CASE("static_node: three lease ends in a row, each followed by a new VM") {
  Leases scene(1);
  scene.make_static("a-0");
  for (int life = 0; life < 3; ++life) {
    scene.start = scene.shot.now;
    scene.up("a-0", 10min);
    scene.entry("a-0").id = std::to_string(life);
    CHECK(scene.play().size() == 1);
    scene.play(5min);
    CHECK(scene.play(4min) == Texts{"lease_end DRAIN a-0"});
    scene.state("a-0", kIdle | NODE_STATE_DRAIN);
    scene.node("a-0").reason = "flex: lease ends x";
    scene.no_vms();
    CHECK(scene.play(1min) == Texts{"unbacked_node POWER_DOWN_FORCE a-0"});
    scene.state("a-0", kGoing | NODE_STATE_DRAIN);
    CHECK(scene.play().size() == 1);
    CHECK(scene.shot.reservations.items.empty());
    scene.state("a-0", kOff | NODE_STATE_DRAIN);
    CHECK(scene.play() == Texts{"lease_end UNDRAIN a-0"});
    scene.state("a-0", kOff);
    CHECK(scene.play() == Texts{"static_node POWER_UP a-0"});
    scene.state("a-0", kComing);
    scene.asked(0, "a-0");
    CHECK(scene.play().empty());
    scene.owned().requests.clear();
  }
}

// ---- exclusive partitions ----

TEST_CASE("lease_end: an exclusive partition's VM goes when its job is done, on two sightings") {
  Leases scene;
  scene.make_partition("solo", "a-[0-7]", true);
  scene.at_work(7, "a-[0-1]", 10h, 1h);
  scene.play();
  scene.end_job(7);
  scene.state("a-[0-1]", kIdle);
  CHECK(scene.play().empty());
  CHECK(scene.play() == Texts{"lease_end POWER_DOWN a-[0-1]"});
  CHECK(scene.memory.worked.size() == 2);
}

TEST_CASE("lease_end: what is left of a lease is used where jobs share nodes") {
  Leases scene;
  scene.make_partition("solo", "a-[0-7]", true);
  scene.make_partition("shared", "a-0", false);
  scene.at_work(7, "a-[0-1]", 10h, 1h);
  scene.play();
  scene.end_job(7);
  scene.state("a-[0-1]", kIdle);
  scene.play();
  CHECK(scene.play() == Texts{"lease_end POWER_DOWN a-1"});
}

TEST_CASE("lease_end: a node that is static, has had no job, another VM or a drain is kept") {
  Leases scene;
  scene.make_partition("solo", "a-[0-7]", true);
  scene.make_static("a-0");
  scene.at_work(7, "a-[0-3]", 10h, 1h);
  scene.up("a-4", 10h);
  scene.play();
  scene.end_job(7);
  scene.state("a-[0-3]", kIdle);
  scene.entry("a-1").id = "another";
  scene.state("a-2", kIdle | NODE_STATE_DRAIN);
  scene.state("a-3", kIdle | NODE_STATE_COMPLETING);
  CHECK(scene.play().empty());
  CHECK(scene.play().empty());
  scene.state("a-3", kIdle);
  CHECK(scene.play().empty());
  CHECK(scene.play() == Texts{"lease_end POWER_DOWN a-3"});
}

TEST_CASE("lease_end: with its memory lost such a node is left to SuspendTime") {
  Leases scene;
  scene.make_partition("solo", "a-[0-7]", true);
  scene.at_work(7, "a-0", 10h, 1h);
  scene.play();
  scene.end_job(7);
  scene.state("a-0", kIdle);
  scene.memory = {};
  scene.play();
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: the budget bounds it, and a clock that is set back costs a sighting") {
  Leases scene;
  scene.settings.sweeper.max_deletes_per_round = 1;
  scene.make_partition("solo", "a-[0-7]", true);
  scene.at_work(7, "a-[0-1]", 10h, 1h);
  scene.play();
  scene.end_job(7);
  scene.state("a-[0-1]", kIdle);
  scene.play();
  CHECK(scene.play(-1h).empty());
  CHECK(scene.play() == Texts{"lease_end POWER_DOWN a-0"});
  CHECK(scene.postponed == 1);
}
