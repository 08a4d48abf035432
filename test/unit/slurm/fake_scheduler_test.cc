// SPDX-License-Identifier: GPL-2.0-or-later
// The fake must do what slurmctld was seen to do, or tests built on it prove nothing.
#include "test/support/fake_scheduler.h"

#include "lib/slurm/node_state.h"
#include "test/support/catch.h"

#include <utility>
#include <vector>

using namespace flex;
using test::FakeScheduler;

TEST_CASE("fake scheduler: loads the jobs asked for and leaves out those it does not know",
          "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_job(1, {{"n0"}}, Seconds{600});
  scheduler.add_job(2, {{"n1"}}, {});
  const std::vector<JobId> ids{2, 99};
  const auto jobs = scheduler.load_jobs(ids);
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 1);
  CHECK(jobs->front().id == 2);
  CHECK(jobs->front().is_configuring);
  CHECK(scheduler.load_all_jobs()->size() == 2);
  CHECK(scheduler.updates.empty());
}

TEST_CASE("fake scheduler: power down by force gives back the jobs of those nodes only",
          "[slurm]") {
  FakeScheduler scheduler;
  for (const char* name : {"n0", "n1", "n2"}) scheduler.add_node(name);
  scheduler.add_job(1, {{"n0"}, {"n1"}}, Seconds{600});
  scheduler.add_job(2, {{"n2"}}, Seconds{600});
  scheduler.add_job(3, {{"n1"}}, Seconds{600}).is_batch = false;
  const std::vector<NodeName> nodes{{"n1"}};
  REQUIRE(scheduler.update_nodes(nodes, NodeRequest::PowerDownForce, "no capacity"));
  CHECK(scheduler.find_job(1)->is_pending);
  CHECK(scheduler.find_job(1)->restart_count == 1);
  CHECK(scheduler.find_job(1)->nodes.empty());
  CHECK(scheduler.find_job(2)->is_running);
  CHECK(scheduler.find_job(3)->is_finished);
  CHECK(is_powering_down(*scheduler.find_node("n1")));
  CHECK_FALSE(is_powering_down(*scheduler.find_node("n0")));
  CHECK(scheduler.find_node("n1")->reason == "no capacity");
  CHECK(scheduler.updates ==
        std::vector<FakeScheduler::Update>{
            {.what = "node POWER_DOWN_FORCE", .nodes = nodes, .text = "no capacity"}});
}

TEST_CASE("fake scheduler: refuses what slurmctld refuses and then changes nothing", "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_node("n0");
  scheduler.add_job(1, {{"n0"}}, {}).may_requeue = false;
  const std::vector<NodeName> nodes{{"n0"}, {"n9"}};
  CHECK(scheduler.update_nodes(nodes, NodeRequest::Down, "x").error().kind == ErrorKind::NotFound);
  CHECK(scheduler.requeue_and_hold(1).error().kind == ErrorKind::Precondition);
  CHECK(scheduler.requeue_and_hold(9).error().kind == ErrorKind::NotFound);
  CHECK(scheduler.set_admin_comment(9, "x").error().kind == ErrorKind::NotFound);
  CHECK_FALSE(is_down(*scheduler.find_node("n0")));
  CHECK(scheduler.find_job(1)->is_running);
  CHECK(scheduler.updates.empty());
}

TEST_CASE("fake scheduler: fails as often as told, then works", "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_job(1, {}, {});
  scheduler.fail_next("set_admin_comment", {ErrorKind::Retry, "away"}, 2);
  CHECK(scheduler.set_admin_comment(1, "x").error().what == "away");
  CHECK_FALSE(scheduler.set_admin_comment(1, "x"));
  CHECK(scheduler.set_admin_comment(1, "x"));
  CHECK(scheduler.find_job(1)->admin_comment == "x");
  CHECK(scheduler.calls.size() == 3);
  CHECK(scheduler.load_nodes());
}

TEST_CASE("fake scheduler: lists, settings and controller are what was set", "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_node("n0");
  scheduler.add_job(1, {{"n0"}}, {});
  scheduler.partitions.push_back({.name = "all"});
  Listed<Node> nodes;
  Listed<Job> jobs;
  Listed<Partition> partitions;
  CHECK(*scheduler.refresh_nodes(nodes));
  CHECK(*scheduler.refresh_jobs(jobs));
  CHECK(*scheduler.refresh_partitions(partitions));
  CHECK(nodes.items.size() == 1);
  CHECK(jobs.items.size() == 1);
  CHECK(partitions.items.size() == 1);
  scheduler.fail_next("refresh_nodes", {ErrorKind::Retry, "away"});
  scheduler.nodes.clear();
  CHECK_FALSE(scheduler.refresh_nodes(nodes));
  CHECK(nodes.items.size() == 1);
  scheduler.settings.version = "26.05.5";
  CHECK(scheduler.load_settings()->version == "26.05.5");
  scheduler.controller = {.is_here = false, .host = "ctl2"};
  CHECK_FALSE(scheduler.find_controller()->is_here);
}

TEST_CASE("fake scheduler: requeues, drains and undrains", "[slurm]") {
  FakeScheduler scheduler;
  const std::vector<NodeName> nodes{{"n0"}};
  scheduler.add_node("n0");
  scheduler.add_job(1, nodes, {});
  REQUIRE(scheduler.requeue(1));
  CHECK(scheduler.find_job(1)->is_pending);
  CHECK(scheduler.updates.back().what == "requeue");
  CHECK(scheduler.requeue(1).error().kind == ErrorKind::Precondition);
  REQUIRE(scheduler.update_nodes(nodes, NodeRequest::Drain, "stopped"));
  CHECK(is_draining(*scheduler.find_node("n0")));
  CHECK(scheduler.find_node("n0")->reason == "stopped");
  REQUIRE(scheduler.update_nodes(nodes, NodeRequest::Undrain, ""));
  CHECK_FALSE(is_draining(*scheduler.find_node("n0")));
  CHECK(scheduler.find_node("n0")->reason.empty());
}

namespace {

Reservation some_reservation(std::vector<NodeName> nodes) {
  return {.name = "eol",
          .nodes = std::move(nodes),
          .start = TimePoint{Seconds{1000}},
          .end = TimePoint{Seconds{2000}}};
}

}  // namespace

TEST_CASE("fake scheduler: keeps, changes and deletes reservations", "[slurm]") {
  FakeScheduler scheduler;
  for (const char* name : {"n0", "n1"}) scheduler.add_node(name);
  REQUIRE(scheduler.create_reservation(some_reservation({{"n0"}})));
  Listed<Reservation> list;
  REQUIRE(scheduler.refresh_reservations(list));
  REQUIRE(list.items.size() == 1);
  CHECK(list.items.front().is_maintenance);
  CHECK(list.items.front().ignores_jobs);

  auto changed = some_reservation({{"n0"}, {"n1"}});
  changed.start = TimePoint{Seconds{900}};
  REQUIRE(scheduler.update_reservation(changed));
  CHECK(scheduler.find_reservation("eol")->nodes.size() == 2);
  CHECK(scheduler.find_reservation("eol")->start == changed.start);
  CHECK(scheduler.find_reservation("eol")->is_maintenance);
  CHECK(scheduler.updates.back() == FakeScheduler::Update{.what = "update_reservation",
                                                          .nodes = changed.nodes,
                                                          .text = "eol",
                                                          .start = changed.start,
                                                          .end = changed.end});
  REQUIRE(scheduler.delete_reservation("eol"));
  CHECK(scheduler.reservations.empty());
  CHECK(scheduler.updates.size() == 3);
}

TEST_CASE("fake scheduler: refuses a reservation as slurmctld does", "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_node("n0");
  CHECK(scheduler.update_reservation(some_reservation({{"n0"}})).error().kind ==
        ErrorKind::NotFound);
  CHECK(scheduler.delete_reservation("eol").error().kind == ErrorKind::NotFound);
  CHECK(scheduler.create_reservation(some_reservation({})).error().kind == ErrorKind::Invalid);
  CHECK(scheduler.create_reservation(some_reservation({{"n9"}})).error().kind ==
        ErrorKind::NotFound);
  REQUIRE(scheduler.create_reservation(some_reservation({{"n0"}})));
  CHECK(scheduler.create_reservation(some_reservation({{"n0"}})).error().kind ==
        ErrorKind::AlreadyExists);
  CHECK(scheduler.updates.size() == 1);
}

TEST_CASE("fake scheduler: signals and tells only a job that runs", "[slurm]") {
  FakeScheduler scheduler;
  scheduler.add_job(1, {{"n0"}}, {});
  scheduler.add_job(2, {{"n1"}}, {}).is_running = false;
  CHECK(scheduler.signal_job(1, 23).error().kind == ErrorKind::Precondition);
  scheduler.find_job(1)->is_configuring = false;
  REQUIRE(scheduler.signal_job(1, 23));
  REQUIRE(scheduler.notify_job(1, "soon"));
  CHECK(scheduler.signal_job(2, 23).error().kind == ErrorKind::Precondition);
  CHECK(scheduler.notify_job(2, "soon").error().kind == ErrorKind::Precondition);
  CHECK(scheduler.signal_job(9, 23).error().kind == ErrorKind::NotFound);
  CHECK(scheduler.updates ==
        std::vector<FakeScheduler::Update>{{.what = "signal", .job = 1, .signal = 23},
                                           {.what = "notify", .job = 1, .text = "soon"}});
}
