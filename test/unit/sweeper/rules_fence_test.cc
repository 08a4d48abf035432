// SPDX-License-Identifier: GPL-2.0-or-later
// Rule lease_end: the reservations before the VMs' ends.
#include "test/unit/sweeper/leases.h"

#include <algorithm>
#include <vector>

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

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
