// SPDX-License-Identifier: GPL-2.0-or-later
// Rule lease_end: reservations, warnings, the drain at the end, VMs of exclusive partitions.
#include "lib/core/job_note.h"
#include "sweeper/lease.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <csignal>
#include <cstdlib>
#include <ctime>

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

/// 2027-01-15T08:00:00Z is the scene's time.
const Utc kUtc;

/// A scene whose reservations are as the last round wanted them.
class Leases : public Scene {
 public:
  explicit Leases(int count = 8) : Scene(count) {
    set().lease_warning = 10min;
    start = shot.now;
  }

  TimePoint start{};

  /// Up, with VMs that end so long after the scene's start.
  void up(const std::string& hostlist, Seconds ends) {
    state(hostlist, kIdle);
    vms(hostlist);
    for (const NodeName& name : names_in(hostlist)) entry(name.text).terminates = start + ends;
  }

  /// Up, with VMs whose fence begins so long after the scene's start: 30 s for slurmctld's tick and
  /// 60 s for the epilog before their end.
  void fenced(const std::string& hostlist, Seconds begins) { up(hostlist, begins + 90s); }

  /// A job at work on VMs that end so long after the start; it ends after `length`.
  Job& at_work(JobId id, const std::string& hostlist, Seconds vms_end, Seconds length) {
    up(hostlist, vms_end);
    Job& job = running_job(id, hostlist);
    job.start_time = start;
    job.time_limit = length;
    job.end_time = start + length;
    return job;
  }

  Texts play(Seconds later = 15s) {
    Texts texts = round(later);
    for (const Action& action : actions) carry_out(action);
    return texts;
  }

  const Reservation& there(const std::string& name) {
    for (const Reservation& reservation : shot.reservations.items) {
      if (reservation.name == name) return reservation;
    }
    FAIL("no reservation " << name);
    return shot.reservations.items.front();
  }

  std::string nodes_in(const std::string& name) { return fold_hostlist(there(name).nodes); }

  const WarnJob* warning(JobId id) const {
    for (const Action& action : actions) {
      const auto* warn = std::get_if<WarnJob>(&action.what);
      if (warn != nullptr && warn->job == id) return warn;
    }
    return nullptr;
  }

  void make_partition(const std::string& name, const std::string& hostlist, bool is_exclusive) {
    Partition partition;
    partition.name = name;
    partition.nodes = names_in(hostlist);
    partition.is_exclusive = is_exclusive;
    shot.partitions.items.push_back(partition);
  }

 private:
  void carry_out(const Action& action) {
    auto& all = shot.reservations.items;
    const auto drop = [&](const std::string& name) {
      std::erase_if(all, [&](const Reservation& known) { return known.name == name; });
    };
    if (const auto* gone = std::get_if<DeleteReservation>(&action.what)) drop(gone->name);
    if (const auto* made = std::get_if<SetReservation>(&action.what)) {
      drop(made->reservation.name);
      all.push_back(made->reservation);
    }
    if (const auto* warn = std::get_if<WarnJob>(&action.what)) {
      memory.warned[warn->job] = {.ends = warn->ends, .restart_count = warn->restart_count};
      for (Job& job : shot.jobs.items) {
        if (job.id == warn->job) job.admin_comment = warn->comment;
      }
    }
  }
};

}  // namespace

// ---- reservations ----

TEST_CASE("lease_end: the fence begins as much before the end as slurmctld takes to end a job") {
  Leases scene;
  scene.shot.settings.kill_wait = 30s;
  scene.shot.settings.over_time_limit = 3min;
  scene.make_partition("long", "a-[0-1]", true);
  scene.make_partition("short", "a-[1-2]", true);
  scene.shot.partitions.items[0].over_time_limit = 10min;
  scene.shot.partitions.items[1].over_time_limit = 0s;
  scene.up("a-[0-3]", 3h);
  scene.play();
  const auto lead_of = [&](const std::string& node) {
    for (const Reservation& made : scene.shot.reservations.items) {
      const auto& nodes = made.nodes;
      if (std::find(nodes.begin(), nodes.end(), NodeName{node}) != nodes.end())
        return scene.start + 3h - made.start;
    }
    return Seconds{0};
  };
  // All in the hour that begins with the first fence.
  CHECK(lead_of("a-0") == 12min);
  CHECK(lead_of("a-3") == 12min);
  // Nearer to the end each has its own.
  scene.play(2h + 44min);
  CHECK(lead_of("a-0") == 12min);
  CHECK(lead_of("a-1") == 12min);
  CHECK(lead_of("a-2") == 2min);
  CHECK(lead_of("a-3") == 5min);
}

TEST_CASE("lease_end: a bucket begins with its first fence, and is the larger the further away") {
  Leases scene;
  scene.fenced("a-[0-1]", 2h + 20min);
  scene.fenced("a-2", 2h + 16min + 40s);
  scene.fenced("a-3", 2h + 60min);
  scene.fenced("a-4", 31h);
  scene.fenced("a-5", 33h);
  scene.fenced("a-6", 35h);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-[0-2] @flex-eol-20270115T1000",
                              "lease_end create_reservation a-3 @flex-eol-20270115T1100",
                              "lease_end create_reservation a-[4-5] @flex-eol-20270116T1200",
                              "lease_end create_reservation a-6 @flex-eol-20270116T1800"});
  const Reservation& made = scene.there("flex-eol-20270115T1000");
  CHECK(made.start == scene.start + 2h + 16min);
  // The hour, 90 s from the fence to the VM's end, and an hour without a sweeper.
  CHECK(made.end == scene.start + 4h + 1min);
  CHECK(made.is_maintenance);
  CHECK(made.ignores_jobs);
}

TEST_CASE("lease_end: buckets fall apart as they come nearer, and never has a node no fence") {
  Leases scene(40);
  for (int i = 0; i < 40; ++i)
    scene.fenced("a-" + std::to_string(i), 12h + i * 7min + (i % 7) * 9s);
  for (int round = 0; round < 17 * 60; ++round) {
    scene.play(60s);
    for (int i = 0; i < 40; ++i) {
      const TimePoint begins = scene.start + 12h + i * 7min + (i % 7) * 9s;
      if (begins < scene.shot.now) continue;
      INFO("a-" << i << " in round " << round);
      const auto& all = scene.shot.reservations.items;
      const auto mine = std::find_if(all.begin(), all.end(), [&](const Reservation& each) {
        return std::find(each.nodes.begin(),
                         each.nodes.end(),
                         NodeName{"a-" + std::to_string(i)}) != each.nodes.end();
      });
      REQUIRE(mine != all.end());
      CHECK(mine->start <= begins);
      CHECK(mine->end > begins + 90s);
      // Not much too early either: three quarters of what is left, and a minute.
      CHECK(begins - mine->start <= (begins - scene.shot.now) * 3 / 4 + 1min);
    }
  }
}

TEST_CASE("lease_end: a week of ends takes about fifty reservations, however many VMs there are") {
  const Seconds step = GENERATE(Seconds{15min}, Seconds{1min}, Seconds{1h});
  const int count = static_cast<int>(Seconds{168h} / step);
  Leases scene(count);
  scene.state("a-[0-" + std::to_string(count - 1) + "]", kIdle);
  scene.vms("a-[0-" + std::to_string(count - 1) + "]");
  int i = 0;
  for (Instance& vm : scene.owned().instances) vm.terminates = scene.start + step * ++i;
  std::size_t reservations = 0;
  std::size_t nodes = 0;
  for (const Action& action : scene.raw_round()) {
    if (!std::holds_alternative<SetReservation>(action.what)) continue;
    ++reservations;
    nodes += nodes_of(action).size();
  }
  CHECK(reservations <= 54);
  CHECK(nodes == static_cast<std::size_t>(count));
}

TEST_CASE("lease_end: what grows comes before what shrinks, whatever changes") {
  Leases scene;
  scene.fenced("a-[0-3]", 2h);
  scene.fenced("a-[4-5]", 4h);
  scene.play();
  // One leaves each bucket for the other, and one for a new one.
  scene.fenced("a-0", 4h);
  scene.fenced("a-4", 2h);
  scene.fenced("a-5", 5h);
  CHECK(scene.play() == Texts{"lease_end update_reservation a-[0-4] @flex-eol-20270115T1000",
                              "lease_end update_reservation a-[0,4-5] @flex-eol-20270115T1200",
                              "lease_end create_reservation a-5 @flex-eol-20270115T1300",
                              "lease_end update_reservation a-[1-4] @flex-eol-20270115T1000",
                              "lease_end update_reservation a-0 @flex-eol-20270115T1200"});
  std::vector<bool> smaller;
  for (const Action& action : scene.actions) {
    if (const auto* set = std::get_if<SetReservation>(&action.what))
      smaller.push_back(set->is_smaller);
  }
  CHECK(smaller == std::vector<bool>{false, false, false, true, true});
}

TEST_CASE("lease_end: one that has begun for VMs that end much later is replaced, not reopened") {
  Leases scene;
  scene.fenced("a-0", 3h);
  scene.play();
  // An admin has moved its start.
  scene.shot.reservations.items[0].start = scene.shot.now;
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T1101",
                              "lease_end delete_reservation @flex-eol-20270115T1100"});
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T1100",
                              "lease_end delete_reservation @flex-eol-20270115T1101"});
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: nothing is written while nothing changes") {
  Leases scene;
  scene.fenced("a-[0-7]", 2h);
  scene.play();
  // slurmctld lists the nodes in an order of its own.
  std::reverse(scene.shot.reservations.items[0].nodes.begin(),
               scene.shot.reservations.items[0].nodes.end());
  for (int i = 0; i < 100; ++i) CHECK(scene.play(60s).empty());
}

TEST_CASE("lease_end: VMs that come later join, and an earlier end is an earlier start") {
  Leases scene;
  scene.fenced("a-0", 2h + 10min);
  scene.play();
  scene.fenced("a-1", 2h + 10min + 5s);
  CHECK(scene.play() == Texts{"lease_end update_reservation a-[0-1] @flex-eol-20270115T1000"});
  CHECK(scene.there("flex-eol-20270115T1000").start == scene.start + 2h + 10min);
  scene.fenced("a-2", 2h + 4min);
  CHECK(scene.play() == Texts{"lease_end update_reservation a-[0-2] @flex-eol-20270115T1000"});
  CHECK(scene.there("flex-eol-20270115T1000").start == scene.start + 2h + 4min);
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: a node without a VM leaves when it goes down, with the last one all goes") {
  Leases scene;
  scene.fenced("a-[0-1]", 2h);
  scene.play();
  // No job may come while slurmctld takes it for up.
  scene.entry("a-0") = dead({"a-0"});
  CHECK(scene.play().empty());
  scene.state("a-0", kGoing);
  CHECK(scene.play() == Texts{"lease_end update_reservation a-1 @flex-eol-20270115T1000"});
  scene.state("a-[0-1]", kOff);
  scene.no_vms();
  CHECK(scene.play() == Texts{"lease_end delete_reservation @flex-eol-20270115T1000"});
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: a node that is going down leaves before its VM does, one that boots is in") {
  Leases scene;
  scene.fenced("a-[0-1]", 2h);
  scene.waiting_job(7, "a-2");
  scene.vms("a-2");
  scene.entry("a-2").terminates = scene.start + 2h + 90s;
  scene.play();
  CHECK(scene.nodes_in("flex-eol-20270115T1000") == "a-[0-2]");
  scene.state("a-0", kGoing);
  scene.play();
  CHECK(scene.nodes_in("flex-eol-20270115T1000") == "a-[1-2]");
}

TEST_CASE("lease_end: a VM that is stopping keeps its node in") {
  Leases scene;
  scene.fenced("a-0", 2h);
  scene.play();
  scene.entry("a-0").status = InstanceStatus::Stopping;
  CHECK(scene.play().empty());
}

TEST_CASE("lease_end: a node with its next VM moves to another bucket") {
  Leases scene;
  scene.fenced("a-[0-1]", 2h);
  scene.play();
  scene.fenced("a-0", 9h);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T1700",
                              "lease_end update_reservation a-1 @flex-eol-20270115T1000"});
}

TEST_CASE("lease_end: near the end the minute counts") {
  Leases scene;
  scene.fenced("a-0", 31min);
  scene.fenced("a-1", 44min);
  scene.play();
  CHECK(scene.nodes_in("flex-eol-20270115T0830") == "a-[0-1]");
  CHECK(scene.play(24min).empty());
  CHECK(scene.play(1min) == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T0831",
                                  "lease_end create_reservation a-1 @flex-eol-20270115T0844",
                                  "lease_end delete_reservation @flex-eol-20270115T0830"});
  CHECK(scene.there("flex-eol-20270115T0844").start == scene.start + 44min);
}

TEST_CASE("lease_end: of VMs that end in the same minute, those that are left stay in it") {
  Leases scene;
  scene.fenced("a-0", 10min);
  scene.fenced("a-1", 10min + 50s);
  scene.play();
  CHECK(scene.nodes_in("flex-eol-20270115T0810") == "a-[0-1]");
  CHECK(scene.there("flex-eol-20270115T0810").start == scene.start + 10min);
  scene.play(10min);
  scene.state("a-0", kGoing);
  scene.entry("a-0") = dead({"a-0"});
  CHECK(scene.play() == Texts{"lease_end update_reservation a-1 @flex-eol-20270115T0810"});
}

TEST_CASE("lease_end: one that has begun stays as it is while its VM has not gone") {
  Leases scene;
  scene.fenced("a-0", 20min);
  scene.play();
  scene.play(16min);
  CHECK(scene.play(5min) == Texts{"lease_end DRAIN a-0"});
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  for (int i = 0; i < 10; ++i) CHECK(scene.play().empty());
}

TEST_CASE("lease_end: none is made that begins in the past, none for what is long overdue") {
  Leases scene;
  scene.fenced("a-0", -1min);
  scene.state("a-0", kIdle | NODE_STATE_DRAIN);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T0759"});
  CHECK(scene.there("flex-eol-20270115T0759").start == scene.shot.now);
  Leases late;
  late.fenced("a-0", -2h);
  late.state("a-0", kIdle | NODE_STATE_DRAIN);
  CHECK(late.play().empty());
}

TEST_CASE("lease_end: somebody else's reservation is never touched, however it is called") {
  Leases scene;
  for (const char* name : {"flex-eol-",
                           "flex-eol-20270115T1000x",
                           "flex-eol-20270115",
                           "flex-eol-2027O115T1000",
                           "flex-eol-20271515T1000",
                           "flex-eol-20270115 1000",
                           "Flex-eol-20270115T1000",
                           "maint",
                           "xflex-eol-20270115T1000",
                           "flex-eol-20270115T2400"}) {
    scene.shot.reservations.items.push_back({.name = name, .nodes = names_in("a-[0-7]")});
  }
  CHECK(scene.play().empty());
  scene.fenced("a-0", 2h);
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T1000"});
}

TEST_CASE("lease_end: what an earlier sweeper left is deleted, what somebody deleted made again") {
  Leases scene;
  scene.shot.reservations.items.push_back({.name = "flex-eol-20270110T0000",
                                           .nodes = names_in("a-0"),
                                           .is_maintenance = true,
                                           .ignores_jobs = true});
  scene.shot.reservations.items.push_back(
      {.name = "flex-eol-20270110T0015", .nodes = names_in("a-0")});
  CHECK(scene.play() == Texts{"lease_end delete_reservation @flex-eol-20270110T0000"});
  scene.fenced("a-0", 2h);
  scene.play();
  scene.shot.reservations.items.clear();
  CHECK(scene.play() == Texts{"lease_end create_reservation a-0 @flex-eol-20270115T1000"});
}

TEST_CASE("lease_end: memory that is lost and a clock that is set back change nothing") {
  Leases scene;
  scene.fenced("a-[0-3]", 2h);
  scene.play();
  scene.memory = {};
  CHECK(scene.play().empty());
  CHECK(scene.play(-10min).empty());
}

TEST_CASE("lease_end: static nodes have theirs, too, and a VM without an end has none") {
  Leases scene;
  scene.make_static("a-[0-1]");
  scene.fenced("a-[0-2]", 100h);
  scene.entry("a-2").terminates.reset();
  CHECK(scene.play() == Texts{"lease_end create_reservation a-[0-1] @flex-eol-20270119T1200"});
}

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
