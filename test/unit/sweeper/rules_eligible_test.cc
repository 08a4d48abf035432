// SPDX-License-Identifier: GPL-2.0-or-later
// Rule no_longer_eligible: what slurmctld tests before it gives a job nodes, while the job waits.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

const Utc kUtc;

/// Job 7 waits for a-[0-1] in partition "p"; it is two hours long.
class Waiting : public Scene {
 public:
  Waiting() {
    Partition partition;
    partition.name = "p";
    partition.nodes = names_in("a-[0-7]");
    partition.is_exclusive = true;
    shot.partitions.items.push_back(partition);
    add(7, "a-[0-1]");
    round();
  }

  Job& add(JobId id, const std::string& hostlist) {
    Job& made = waiting_job(id, hostlist, 2h);
    made.partition = "p";
    made.account = "Physics";
    made.qos = "normal";
    asked(id, hostlist).run_duration = 2h + 15min;
    return made;
  }

  Job& job(JobId id = 7) {
    return *std::find_if(shot.jobs.items.begin(), shot.jobs.items.end(), [&](const Job& known) {
      return known.id == id;
    });
  }

  Partition& partition() { return shot.partitions.items[0]; }

  /// From `from` to `to` after now.
  Reservation& reserve(const std::string& hostlist, Seconds from, Seconds to) {
    Reservation& made = shot.reservations.items.emplace_back();
    made.name = "course";
    made.nodes = names_in(hostlist);
    made.start = shot.now + from;
    made.end = shot.now + to;
    return made;
  }

  /// What was decided in the second of two rounds; in the first, nothing.
  Texts twice() {
    CHECK(round() == Texts{});
    return round();
  }
};

const Texts kGivenBack{"no_longer_eligible cancel_request a-[0-1] @hpc-a/j7-x job=7",
                       "no_longer_eligible comment job=7",
                       "no_longer_eligible requeue a-[0-1] job=7",
                       "no_longer_eligible POWER_DOWN_FORCE a-[0-1]"};

}  // namespace

TEST_CASE("no_longer_eligible: nothing is in its way") {
  Waiting scene;
  scene.job().deadline = scene.shot.now + 5h;
  scene.partition().allow_accounts = {"chem", "physics"};
  scene.partition().deny_accounts = {"physics"};  // does not count beside the other
  scene.partition().deny_qos = {"low"};
  scene.reserve("a-[2-7]", 1h, 3h);
  scene.reserve("a-[0-1]", 3h, 4h);
  scene.reserve("a-[0-1]", -3h, -1h);
  CHECK(scene.rounds(3) == Texts{});
}

TEST_CASE("no_longer_eligible: a reservation of some cores, for jobs that take whole nodes") {
  Waiting scene;
  scene.reserve("a-[0-1]", 1h, 4h).is_partial = true;
  SECTION("whole nodes") {
    CHECK(scene.twice() == kGivenBack);
  }
  SECTION("shared ones") {
    scene.partition().is_exclusive = false;
    scene.round();
    for (const std::string& text : scene.round()) CHECK_FALSE(text.starts_with("no_longer"));
  }
}

TEST_CASE("no_longer_eligible: others on the nodes of its own reservation") {
  Waiting scene;
  scene.job().reservation = "own,other";
  Reservation& own = scene.reserve("a-[0-1]", -1h, 30h);
  own.name = "own";
  SECTION("its own") {
    CHECK(scene.rounds(3) == Texts{});
  }
  SECTION("a maintenance") {
    scene.reserve("a-1", 1h, 3h).is_maintenance = true;
    CHECK(scene.twice() == kGivenBack);
  }
  SECTION("a course, if its own may overlap") {
    own.may_overlap = true;
    Reservation& course = scene.reserve("a-1", 1h, 3h);
    CHECK(scene.rounds(3) == Texts{});
    course.is_maintenance = true;
    CHECK(scene.twice() == kGivenBack);
  }
  SECTION("its own is for the maintenance") {
    own.is_maintenance = true;
    scene.reserve("a-1", 1h, 3h).is_maintenance = true;
    CHECK(scene.rounds(3) == Texts{});
  }
}

TEST_CASE("no_longer_eligible: a reservation that it would reach into, seen twice") {
  Waiting scene;
  scene.reserve("a-1", 1h, 3h);
  CHECK(scene.twice() == kGivenBack);
  CHECK(scene.comment(7) ==
        "flex: no VMs: reservation course has its nodes from 2027-01-15T09:00 to "
        "2027-01-15T11:00; back in the queue");
}

TEST_CASE("no_longer_eligible: it comes to reach into one while it waits") {
  Waiting scene;
  scene.reserve("a-[0-1]", 2h + 50s, 3h);
  CHECK(scene.rounds(3) == Texts{});
  CHECK(scene.twice() == kGivenBack);
}

TEST_CASE("no_longer_eligible: a reservation made and deleted at once costs nobody a place") {
  Waiting scene;
  scene.reserve("a-1", 1h, 3h);
  CHECK(scene.round() == Texts{});
  scene.shot.reservations.items.clear();
  CHECK(scene.round() == Texts{});
  scene.reserve("a-1", 1h, 3h);
  CHECK(scene.round() == Texts{});
}

TEST_CASE("no_longer_eligible: a job without a limit reaches into every one") {
  Waiting scene;
  scene.job().time_limit.reset();
  scene.owned().requests[0].run_duration = 168h;
  scene.reserve("a-1", 100h, 101h);
  CHECK(scene.twice() == kGivenBack);
}

TEST_CASE("no_longer_eligible: its own reservation, and our fence") {
  Waiting scene;
  SECTION("its own") {
    scene.job().reservation = "course";
    scene.reserve("a-[0-1]", -1h, 3h);
  }
  SECTION("the fence") {
    Reservation& fence = scene.reserve("a-0", 1h, 3h);
    fence.name = "flex-eol-20270115T0900";
    fence.is_maintenance = true;
    fence.ignores_jobs = true;
    scene.vms("a-4");
    scene.state("a-4", kIdle);
  }
  scene.round();
  for (const std::string& text : scene.round()) CHECK_FALSE(text.starts_with("no_longer"));
}

TEST_CASE("no_longer_eligible: its deadline") {
  Waiting scene;
  SECTION("it would end too late") {
    scene.job().deadline = scene.shot.now + 2h;
    CHECK(scene.twice() == kGivenBack);
    CHECK(scene.comment(7) ==
          "flex: no VMs: it cannot end before its deadline 2027-01-15T10:00; back in the queue");
  }
  SECTION("with --time-min it still could be in time") {
    scene.job().deadline = scene.shot.now + 2h;
    scene.job().time_min = 1h;
    CHECK(scene.rounds(3) == Texts{});
  }
  SECTION("it has passed, for a job without a limit") {
    scene.job().time_limit.reset();
    scene.owned().requests[0].run_duration = 168h;
    scene.job().deadline = scene.shot.now;
    CHECK(scene.twice() == kGivenBack);
  }
}

TEST_CASE("no_longer_eligible: its partition does not start jobs any more") {
  Waiting scene;
  scene.partition().starts_jobs = false;
  CHECK(scene.twice() == kGivenBack);
  CHECK(scene.comment(7) == "flex: no VMs: partition p is down or inactive; back in the queue");
}

TEST_CASE("no_longer_eligible: its partition is closed to its account or QOS while it waits") {
  Waiting scene;
  SECTION("accounts that may") {
    scene.partition().allow_accounts = {"chem"};
  }
  SECTION("accounts that may not") {
    scene.partition().deny_accounts = {"chem", "physics"};
  }
  SECTION("QOS that may") {
    scene.partition().allow_qos = {"high"};
  }
  SECTION("QOS that may not") {
    scene.partition().deny_qos = {"NORMAL"};
  }
  CHECK(scene.twice() == kGivenBack);
}

TEST_CASE("no_longer_eligible: what slurmctld knew when it gave the job its nodes is its matter") {
  Waiting scene;
  // Sub-accounts of the list may, from some release on.
  scene.partition().allow_accounts = {"science"};
  scene.job().restart_count = 1;
  CHECK(scene.rounds(3) == Texts{});
  // Not so what is the same in all releases.
  scene.partition().starts_jobs = false;
  CHECK(scene.twice() == kGivenBack);
}

TEST_CASE(
    "no_longer_eligible: a job that gets nodes again in spite of it is not given back again") {
  Waiting scene;
  scene.reserve("a-1", 1h, 3h);
  CHECK(scene.twice() == kGivenBack);
  scene.job().restart_count = 1;
  CHECK(scene.rounds(3) == Texts{});
  SECTION("but for something else") {
    scene.partition().starts_jobs = false;
    CHECK(scene.twice() == kGivenBack);
  }
  SECTION("and for the same if that was not so when it got them") {
    scene.shot.reservations.items[0].start = scene.shot.now + 5h;
    scene.job().restart_count = 2;
    CHECK(scene.round() == Texts{});
    scene.shot.reservations.items[0].start = scene.shot.now + 1h;
    CHECK(scene.twice() == kGivenBack);
  }
}

TEST_CASE("no_longer_eligible: a job that cannot be requeued is cancelled") {
  Waiting scene;
  scene.job().is_batch = false;
  scene.partition().starts_jobs = false;
  CHECK(scene.twice() == Texts{"no_longer_eligible cancel_request a-[0-1] @hpc-a/j7-x job=7",
                               "no_longer_eligible comment job=7",
                               "no_longer_eligible cancel_job a-[0-1] job=7",
                               "no_longer_eligible POWER_DOWN_FORCE a-[0-1]"});
}

TEST_CASE("no_longer_eligible: not when its VMs are there or are being made") {
  Waiting scene;
  scene.partition().starts_jobs = false;
  SECTION("being made") {
    scene.owned().requests[0].state = RequestState::Provisioning;
  }
  SECTION("there") {
    scene.owned().requests[0].state = RequestState::Succeeded;
    scene.vms("a-[0-1]");
  }
  SECTION("at work") {
    scene.job().is_configuring = false;
  }
  CHECK(scene.round() == Texts{});
  CHECK(scene.round() == Texts{});
}

TEST_CASE("no_longer_eligible: a job that shares its node leaves the request to the others") {
  Waiting scene;
  Job other = scene.job();
  other.id = 8;
  other.qos = "high";
  scene.shot.jobs.items.push_back(other);
  scene.round();
  scene.partition().deny_qos = {"normal"};
  CHECK(scene.twice() ==
        Texts{"no_longer_eligible comment job=7", "no_longer_eligible requeue a-[0-1] job=7"});
}

TEST_CASE("no_longer_eligible: static nodes stay, and the budget bounds it") {
  Waiting scene;
  scene.partition().starts_jobs = false;
  SECTION("static nodes") {
    scene.make_static("a-[0-1]");
    for (ResizeRequest& request : scene.owned("hpc-a").requests)
      request.run_duration = kMaxRunDuration;
    CHECK(scene.twice() ==
          Texts{"no_longer_eligible comment job=7", "no_longer_eligible requeue a-[0-1] job=7"});
  }
  SECTION("the budget") {
    scene.add(8, "a-2");
    scene.settings.sweeper.max_deletes_per_round = 1;
    CHECK(scene.twice() == kGivenBack);
    CHECK(scene.postponed == 1);
  }
}

TEST_CASE("no_longer_eligible: a limit of its partition is changed while it waits") {
  Waiting scene;
  SECTION("MaxTime") {
    scene.partition().max_time = 1h;
  }
  SECTION("MaxNodes") {
    scene.partition().max_nodes = 1;
  }
  SECTION("MinNodes") {
    scene.partition().min_nodes = 3;
  }
  CHECK(scene.twice() == kGivenBack);
  // An admin may have raised the job's own limit: slurmctld gives it nodes again.
  scene.job().restart_count = 1;
  CHECK(scene.rounds(3) == Texts{});
}

TEST_CASE("no_longer_eligible: limits of its partition that it meets, or that its QOS overrides") {
  Waiting scene;
  SECTION("it meets them") {
    scene.partition().max_time = 2h;
    scene.partition().max_nodes = 2;
    scene.partition().min_nodes = 2;
  }
  SECTION("its QOS overrides them") {
    scene.partition().max_time = 1h;
    scene.partition().max_nodes = 1;
    scene.partition().min_nodes = 3;
    scene.shot.accounting.emplace().qos = {{.name = "normal",
                                            .ignores_partition_time = true,
                                            .ignores_partition_max_nodes = true,
                                            .ignores_partition_min_nodes = true}};
  }
  CHECK(scene.rounds(3) == Texts{});
}

TEST_CASE("no_longer_eligible: a limit that an admin raises for the job is no obstacle") {
  Waiting scene;
  scene.partition().max_time = 2h;
  CHECK(scene.round() == Texts{});
  scene.job().time_limit = 3h;
  const Texts texts = scene.rounds(3);
  CHECK(std::none_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.starts_with("no_longer_eligible");
  }));
}

TEST_CASE("no_longer_eligible: what the accounting says when it comes late was so before") {
  Waiting scene;
  scene.shot.settings.enforced = {.associations = true, .limits = true, .qos = true};
  scene.job().user = "ann";
  CHECK(scene.rounds(2) == Texts{});
  Accounting& accounting = scene.shot.accounting.emplace();
  accounting.associations = {{.id = 1, .user = "ann", .account = "physics"}};
  accounting.associations[0].limits.user_jobs = 0;
  accounting.qos = {{.name = "normal"}};
  CHECK(scene.rounds(3) == Texts{});
}

TEST_CASE("no_longer_eligible: what the accounting allows is changed while it waits") {
  Waiting scene;
  scene.shot.settings.enforced = {.associations = true, .limits = true, .qos = true};
  Accounting& accounting = scene.shot.accounting.emplace();
  scene.job().user = "ann";
  accounting.associations = {{.id = 1, .user = "ann", .account = "physics"}};
  accounting.qos = {{.name = "normal"}};
  CHECK(scene.rounds(3) == Texts{});
  SECTION("its user may run no jobs") {
    accounting.associations[0].limits.user_jobs = 0;
  }
  SECTION("the partition's QOS allows less time") {
    scene.partition().qos = "part";
    accounting.qos.push_back({.name = "part", .limits = {.wall = 1h}});
  }
  CHECK(scene.twice() == kGivenBack);
}
