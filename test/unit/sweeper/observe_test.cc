// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/observe.h"

#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"

#include <slurm/slurm.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace flex;
using namespace flex::test;

namespace {

struct Look {
  FakeCloud cloud{};
  FakeScheduler slurm{};
  Config settings = config({nodeset("a", nodes("a", 2))});
  Snapshot shot{};

  Look() {
    shot.cluster = "hpc";
    slurm.add_node("a-0");
    slurm.settings.version = "24.11.5";
  }

  Result<Done> look() { return observe(cloud, slurm, settings, TimePoint{Seconds{1000}}, shot); }
};

}  // namespace

TEST_CASE(
    "observe: a group is ours if its mark and its name say so, and is only then looked into") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.add_group("hpc-old", ownership_mark("hpc", "old"));
  look.cloud.add_group("hpc-b", "by hand");
  look.cloud.add_group("hpc-x-a", ownership_mark("hpc-x", "a"));
  look.cloud.add_group("hpc-y", ownership_mark("hpc", "z"));
  look.cloud.add_group("other-a", ownership_mark("hpc", "a"));
  REQUIRE(look.look());
  REQUIRE(look.shot.groups.size() == 2);
  CHECK(look.shot.groups[0].nodeset == "a");
  CHECK(look.shot.groups[1].nodeset == "old");
  CHECK(look.shot.foreign_groups.size() == 3);
  CHECK(look.cloud.count("fetch_instances") == 2);
}

TEST_CASE("observe: what only some nodesets need is asked for by them alone") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  for (int i = 0; i < 4; ++i) {
    look.cloud.calls.clear();
    REQUIRE(look.look());
    CHECK(look.cloud.calls.size() == 3);
  }
  look.settings.nodesets[0].mode = Mode::BulkInsert;
  look.settings.nodesets[0].placement.max_distance = 2;
  look.cloud.calls.clear();
  REQUIRE(look.look());
  CHECK(look.cloud.count("fetch_loose_instances") == 1);
  CHECK(look.cloud.count("fetch_bulk_operations") == 1);
  CHECK(look.cloud.count("fetch_policies") == 1);
  CHECK(look.cloud.calls.size() == 6);
}

TEST_CASE("observe: what speaks for VMs in no group is followed") {
  Look look;
  look.cloud.add_loose("a-0", ownership_mark("hpc", "a"));
  look.shot.may_have_loose = {"a"};
  REQUIRE(look.look());
  REQUIRE(look.shot.groups.size() == 1);
  CHECK(look.shot.groups[0].instances.size() == 1);
  // As long as there are some.
  look.shot.may_have_loose.clear();
  look.cloud.calls.clear();
  REQUIRE(look.look());
  CHECK(look.cloud.count("fetch_loose_instances") == 1);
  look.cloud.loose.clear();
  REQUIRE(look.look());
  look.cloud.calls.clear();
  REQUIRE(look.look());
  CHECK(look.cloud.count("fetch_loose_instances") == 0);
}

TEST_CASE("observe: a list that fails makes the view of its nodeset incomplete") {
  for (const char* method : {"fetch_groups", "fetch_requests", "fetch_instances"}) {
    Look look;
    look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
    look.cloud.next_error(method, {ErrorKind::Retry, "away"});
    CHECK_FALSE(look.look());
  }
  for (const char* method : {"fetch_bulk_operations", "fetch_loose_instances"}) {
    Look look;
    look.settings.nodesets[0].mode = Mode::BulkInsert;
    look.cloud.next_error(method, {ErrorKind::Denied, "no"});
    CHECK_FALSE(look.look());
  }
  for (const char* method :
       {"refresh_nodes", "refresh_jobs", "refresh_partitions", "refresh_reservations"}) {
    Look look;
    look.slurm.fail_next(method, {ErrorKind::Retry, "away"});
    CHECK_FALSE(look.look());
  }
}

TEST_CASE("observe: a list that fails costs only its own nodeset") {
  Look look;
  look.settings = config({nodeset("a", nodes("a", 2)), nodeset("b", nodes("b", 2))});
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.add_group("hpc-b", ownership_mark("hpc", "b"));
  look.cloud.add_instance("hpc-a", "a-0");
  REQUIRE(look.look());
  CHECK(look.shot.unseen.empty());
  CHECK(look.shot.seen_once.size() == 2);
  look.cloud.next_error("fetch_instances", {ErrorKind::Retry, "away"});
  REQUIRE(look.look());
  REQUIRE(look.shot.unseen.size() == 1);
  CHECK(look.shot.unseen.contains("a"));
  // It is as it was seen last.
  REQUIRE(look.shot.groups.size() == 2);
  CHECK(look.shot.groups[0].instances.size() == 1);
  look.cloud.next_error("fetch_instances", {ErrorKind::Retry, "away"});
  CHECK_FALSE(observe_whole(look.cloud, look.slurm, look.settings, TimePoint{}, look.shot));
  REQUIRE(look.look());
  CHECK(look.shot.unseen.empty());
}

TEST_CASE("observe: policies that cannot be listed hold nothing up") {
  for (const ErrorKind kind : {ErrorKind::Retry, ErrorKind::Denied}) {
    Look look;
    look.settings.nodesets[0].placement.max_distance = 2;
    look.cloud.next_error("fetch_policies", {kind, "no"});
    CHECK(look.look());
    CHECK(look.cloud.count("fetch_policies") == 1);
  }
}

TEST_CASE("observe: a group gone in between is not there; with one list only nothing is known") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.next_error("fetch_requests", {ErrorKind::NotFound, "gone"});
  CHECK_FALSE(look.look());
  look.cloud.next_error("fetch_requests", {ErrorKind::NotFound, "gone"});
  look.cloud.next_error("fetch_instances", {ErrorKind::NotFound, "gone"});
  REQUIRE(look.look());
  CHECK(look.shot.groups.empty());
}

TEST_CASE("observe: a slurmctld that shows no nodes is not believed") {
  Look look;
  look.slurm.nodes.clear();
  CHECK_FALSE(look.look());
}

TEST_CASE("observe: says what it is reading") {
  Look look;
  look.cloud.add_group("hpc-a", ownership_mark("hpc", "a"));
  look.cloud.add_group("hpc-old", ownership_mark("hpc", "old"));
  std::vector<std::string> told;
  const Progress progress = [&told](const std::string& doing) { told.push_back(doing); };
  REQUIRE(observe(
      look.cloud, look.slurm, look.settings, TimePoint{Seconds{1000}}, look.shot, progress));
  CHECK(told == std::vector<std::string>{"the list of groups at Compute Engine",
                                         "groups at Compute Engine: 1 of 2",
                                         "groups at Compute Engine: 2 of 2",
                                         "nodes at slurmctld",
                                         "jobs at slurmctld (1 nodes)",
                                         "reservations and partitions at slurmctld (0 jobs)"});
}

TEST_CASE("observe: before 24.05 all nodes are asked for unless all are dark") {
  struct Case {
    std::uint64_t state;
    bool is_asked;
  };

  constexpr std::uint64_t kPoweredDown = NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
  const std::vector<Case> cases{
      {NODE_STATE_IDLE | kPoweredDown, false},
      {NODE_STATE_IDLE | kPoweredDown | NODE_STATE_DRAIN, false},
      {NODE_STATE_IDLE | kPoweredDown | NODE_STATE_NO_RESPOND, false},
      // slurmctld has not woken it yet.
      {NODE_STATE_ALLOCATED | kPoweredDown, true},
      {NODE_STATE_MIXED | kPoweredDown, true},
      {NODE_STATE_DOWN | kPoweredDown, true},
      {NODE_STATE_IDLE | kPoweredDown | NODE_STATE_POWER_UP, true},
      {NODE_STATE_IDLE | kPoweredDown | NODE_STATE_POWER_DOWN, true},
      {NODE_STATE_IDLE | NODE_STATE_CLOUD, true},
      {NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERING_DOWN, true},
  };
  for (const char* version : {"22.05.8", "23.11.10", "24.05.1"}) {
    for (const Case& each : cases) {
      Look look;
      look.slurm.settings.version = version;
      look.slurm.nodes.front().state = static_cast<std::uint32_t>(each.state);
      REQUIRE(look.look());
      REQUIRE(look.shot.nodes.as_of != TimePoint{});
      look.slurm.asked_since.clear();
      REQUIRE(look.look());
      CAPTURE(version, each.state);
      CHECK((look.slurm.asked_since.front() == TimePoint{}) ==
            (each.is_asked && std::string(version) < "24.05"));
    }
  }
}

namespace {

/// Many groups of jobs, of which nothing changes but what the test does.
struct Crowd : Look {
  explicit Crowd(int groups) {
    settings = config({nodeset("a", nodes("a", 100))});
    for (int i = 0; i < groups; ++i) {
      const std::string name = "hpc-a-j" + std::to_string(i);
      cloud.add_group(name, ownership_mark("hpc", "a") + " job=" + std::to_string(i));
      cloud.add_instance(name, "a-" + std::to_string(i)).id = std::to_string(1000 + i);
    }
    // The first look reads all, the second makes sure.
    for (int i = 0; i < 2; ++i) settle();
  }

  void settle() {
    cloud.calls.clear();
    REQUIRE(look());
  }

  const SweptGroup& group(const std::string& name) {
    for (const SweptGroup& each : shot.groups) {
      if (each.group.name.text == name) return each;
    }
    throw std::runtime_error(name);
  }
};

}  // namespace

TEST_CASE("observe: many groups in which nothing happens cost few calls") {
  Crowd crowd(60);
  crowd.settle();
  CHECK(crowd.cloud.count("fetch_groups") == 1);
  CHECK(crowd.cloud.count("fetch_vms") == 1);
  CHECK(crowd.cloud.count("fetch_instances") == 3);
  CHECK(crowd.cloud.count("fetch_requests") == 3);
  CHECK(crowd.shot.groups.size() == 60);
  CHECK(crowd.group("hpc-a-j59").instances.size() == 1);
  // All are read in time.
  std::set<std::string> read;
  for (int i = 0; i < 20; ++i) {
    crowd.settings.sweeper.interval = Seconds{15};
    crowd.cloud.calls.clear();
    REQUIRE(observe(
        crowd.cloud, crowd.slurm, crowd.settings, TimePoint{Seconds{2000 + 15 * i}}, crowd.shot));
    for (const CloudCall& call : crowd.cloud.calls) {
      if (call.method == "fetch_instances") read.insert(call.group);
    }
  }
  CHECK(read.size() == 60);
}

TEST_CASE("observe: of a group whose request waits only the requests are read") {
  Crowd crowd(60);
  crowd.cloud.add_request("hpc-a-j7", "j7-x", {"a-70"});
  crowd.settle();
  CHECK(crowd.group("hpc-a-j7").requests.size() == 1);
  CHECK(crowd.group("hpc-a-j7").instances.size() == 2);
  crowd.settle();
  crowd.settle();
  const auto count = [&](const char* method) {
    return std::count_if(crowd.cloud.calls.begin(), crowd.cloud.calls.end(), [&](const auto& call) {
      return call.method == method && call.group == "hpc-a-j7";
    });
  };
  CHECK(count("fetch_requests") == 1);
  CHECK(count("fetch_instances") == 0);
  CHECK(crowd.group("hpc-a-j7").is_kept);
  // When it is served all of it is.
  crowd.cloud.serve("hpc-a-j7", "j7-x");
  crowd.settle();
  CHECK(count("fetch_instances") == 1);
  CHECK_FALSE(crowd.group("hpc-a-j7").is_kept);
}

TEST_CASE("observe: a VM that goes or changes is seen at once, whatever the record says") {
  for (const bool is_gone : {true, false}) {
    Crowd crowd(60);
    crowd.settle();
    Instance& vm = crowd.cloud.groups.at("hpc-a-j50").instances.front();
    const ActionCounts before = crowd.group("hpc-a-j50").group.actions;
    // The entry stays, its VM is gone; or it stops.
    vm.status = is_gone ? InstanceStatus::None : InstanceStatus::Stopping;
    crowd.settle();
    CHECK(crowd.group("hpc-a-j50").group.actions == before);
    CHECK(crowd.group("hpc-a-j50").instances.front().status == vm.status);
  }
}

TEST_CASE("observe: a zone's VMs that cannot be listed cost a few groups' reading, not all") {
  Crowd crowd(60);
  crowd.cloud.next_error("fetch_vms", {ErrorKind::Denied, "no"});
  crowd.settle();
  CHECK(crowd.cloud.count("fetch_instances") == 23);
  CHECK(crowd.shot.unseen.empty());
  CHECK(crowd.shot.groups.size() == 60);
}

TEST_CASE("observe: where there are few groups all are read without the zone's list") {
  Crowd crowd(15);
  crowd.cloud.next_error("fetch_vms", {ErrorKind::Denied, "no"});
  crowd.settle();
  CHECK(crowd.cloud.count("fetch_instances") == 15);
}

TEST_CASE("observe: a group of the same name that was made anew is read") {
  Crowd crowd(60);
  crowd.settle();
  crowd.cloud.groups.at("hpc-a-j50").group.created = TimePoint{Seconds{5000}};
  crowd.cloud.groups.at("hpc-a-j50")
      .requests.push_back({.name = {"old"}, .state = RequestState::Failed});
  crowd.settle();
  CHECK(crowd.group("hpc-a-j50").requests.size() == 1);
}

TEST_CASE("observe: the accounting is asked for while it is enforced and a job waits") {
  Look look;
  look.slurm.accounting.associations = {{.id = 4}};
  const auto asked = [&] {
    look.slurm.calls.clear();
    REQUIRE(look.look());
    observe_accounting(look.slurm, look.shot);
    return std::count(look.slurm.calls.begin(), look.slurm.calls.end(), "load_accounting");
  };
  look.slurm.settings.enforced.associations = true;
  CHECK(asked() == 0);
  look.slurm.add_job(7, {{"a-0"}}, Seconds{3600});
  CHECK(asked() == 1);
  REQUIRE(look.shot.accounting);
  CHECK(look.shot.accounting->associations.size() == 1);
  SECTION("what is not known is not remembered, and holds nothing up") {
    look.slurm.fail_next("load_accounting", {ErrorKind::Retry, "no"});
    CHECK(asked() == 1);
    CHECK_FALSE(look.shot.accounting);
  }
  SECTION("the job has begun") {
    look.slurm.find_job(7)->is_configuring = false;
    CHECK(asked() == 0);
    CHECK_FALSE(look.shot.accounting);
  }
  SECTION("nothing is enforced any more") {
    look.slurm.settings.enforced = {};
    CHECK(asked() == 0);
  }
}
