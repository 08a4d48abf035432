// SPDX-License-Identifier: GPL-2.0-or-later
// Whose turn it is: requests beyond what the region takes wait, longest waiting first.
#include "sweeper/queue.h"

#include "test/support/catch.h"
#include "test/support/scene.h"

#include <string>
#include <vector>

using namespace flex;
using namespace flex::test;

namespace {

std::string node_name(int number) {
  return "a-" + std::to_string(number);
}

/// Jobs 1 … `count` on a node each; job 1 has waited for `count` seconds, the last for one.
Scene crowd(int count, std::size_t most) {
  Scene scene{count};
  scene.settings.api.max_active_requests = most;
  for (int i = 0; i < count; ++i) {
    scene.waiting_job(static_cast<JobId>(i + 1), node_name(i)).start_time =
        scene.shot.now - Seconds{count - i};
  }
  return scene;
}

/// The jobs that the last round asks for, in the order of the requests.
std::vector<JobId> asked_jobs(const Scene& scene) {
  std::vector<JobId> jobs;
  for (const Action& action : scene.actions) {
    const auto* ask = std::get_if<AskForNodes>(&action.what);
    if (ask == nullptr) continue;
    for (const GroupPlan& group : ask->plan.groups) {
      for (const PlannedRequest& request : group.requests) jobs.push_back(request.job);
    }
  }
  return jobs;
}

using Jobs = std::vector<JobId>;

}  // namespace

TEST_CASE("queue: longest waiting first, and only as many as there is room for") {
  Scene scene = crowd(6, 3);
  scene.asked(9, "a-5");  // job 6's node waits already
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{1, 2});
}

TEST_CASE("queue: without a known start the first sighting counts") {
  Scene scene{3};
  scene.settings.api.max_active_requests = 1;
  scene.waiting_job(9, "a-0");
  scene.round();
  scene.waiting_job(4, "a-1");
  scene.waiting_job(5, "a-2").start_time = scene.shot.now;
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{9});
  scene.asked(9, "a-0");
  scene.round();
  CHECK(asked_jobs(scene).empty());
  scene.owned().requests.clear();
  scene.vms("a-0");
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{5});
}

TEST_CASE("queue: a job that was there first is not passed by a smaller one") {
  Scene scene{2500};
  scene.settings.api.max_active_requests = 2;
  scene.waiting_job(1, "a-[0-1999]").start_time = scene.shot.now - Seconds{100};
  scene.waiting_job(2, "a-2000").start_time = scene.shot.now;
  scene.asked(9, "a-2001");
  scene.rounds(2);
  CHECK(asked_jobs(scene).empty());
  scene.owned().requests.clear();
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{1, 1});
}

TEST_CASE("queue: a job that needs more requests than there ever are begins when it is alone") {
  Scene scene{1500};
  scene.settings.api.max_active_requests = 1;
  scene.waiting_job(1, "a-[0-1400]");
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{1, 1});
}

TEST_CASE("queue: static nodes take their turn among the jobs") {
  Scene scene{3};
  scene.settings.api.max_active_requests = 1;
  scene.make_static("a-0");
  scene.state("a-0", kComing);
  scene.round();
  scene.waiting_job(7, "a-1").start_time = scene.shot.now + Seconds{1};
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{0});
}

TEST_CASE("queue: the next attempt waits for its turn like everybody") {
  Scene scene = crowd(2, 1);
  scene.asked(2, "a-1", RequestState::Failed).error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED",
                                                       .message = "x"};
  scene.rounds(5, Seconds{30});
  CHECK(asked_jobs(scene) == Jobs{1});
  scene.asked(1, "a-0");
  CHECK(scene.round().empty());
  scene.owned().requests.back().state = RequestState::Succeeded;
  scene.vms("a-0");
  CHECK(scene.round() == Texts{"failed_request ask a-1 job=2"});
}

TEST_CASE("queue: a request that failed because too many were active fails no job") {
  Scene scene = crowd(1, 5);
  ResizeRequest& failed = scene.asked(1, "a-0", RequestState::Failed);
  failed.error = {.code = "QUOTA_EXCEEDED", .message = "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded."};
  failed.description = request_description(1, failed.nodes, {.attempt = 9});
  CHECK(scene.round() == Texts{"failed_request ask a-0 job=1"});
}

TEST_CASE("queue: who waits is told how many are before") {
  Scene scene = crowd(4, 1);
  scene.asked(9, "a-3");
  scene.shot.jobs.items.pop_back();
  scene.rounds(2);
  CHECK(scene.comment(1) ==
        "flex: waiting for its turn: 1 of 1 requests of region us-central1 are in use, it is the "
        "next one (since 07:59)");
  CHECK_THAT(scene.comment(2), ContainsSubstring(", 1 job is before it (since"));
  CHECK_THAT(scene.comment(3), ContainsSubstring(", 2 jobs are before it (since"));
}

TEST_CASE("queue: where Google is full before the config says so, one a round tries") {
  Scene scene = crowd(4, 100);
  scene.memory.requests = {.limit = 1, .probes = 1, .learned = scene.shot.now};
  scene.asked(9, "a-3");
  scene.shot.jobs.items.pop_back();
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{1});
  for (const JobId job : {JobId{1}, JobId{2}})
    CHECK_THAT(scene.comment(job),
               ContainsSubstring("Google takes no more requests in region us-central1 (quota "
                                 "ACTIVE_RESIZE_REQUESTS)"));
}

TEST_CASE("queue: those who wait outlive ResumeTimeout, all of a job's nodes") {
  Scene scene{4};
  scene.settings.api.max_active_requests = 1;
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.waiting_job(1, "a-[0-1]").start_time = scene.shot.now;
  scene.waiting_job(9, "a-3");
  scene.asked(9, "a-3");
  CHECK(scene.rounds(4) == Texts{"keep_waiting POWER_UP a-[0-1,3]"});
}

TEST_CASE("queue: so does one that is tried again and again") {
  Scene scene = crowd(2, 100);
  scene.memory.requests = {.limit = 1, .probes = 1, .learned = scene.shot.now};
  scene.shot.settings.resume_timeout = Seconds{100};
  scene.asked(1, "a-0");
  CHECK(scene.rounds(4) ==
        Texts{"unrequested_node ask a-1 job=2", "keep_waiting POWER_UP a-[0-1]"});
}

TEST_CASE("queue: and all nodes of a job between two attempts") {
  Scene scene{4};
  scene.shot.settings.resume_timeout = Seconds{30};
  scene.waiting_job(1, "a-[0-1]");
  scene.asked(1, "a-[0-1]", RequestState::Failed).error = {.code = "INTERNAL_ERROR",
                                                           .message = "x"};
  CHECK(scene.rounds(2) == Texts{"keep_waiting POWER_UP a-[0-1]"});
}

TEST_CASE("queue: a nodeset that is at its max_nodes is waited for in the same way") {
  Scene scene{8};
  scene.set().max_nodes = 3;
  scene.waiting_job(1, "a-[0-1]").start_time = scene.shot.now - Seconds{30};
  scene.waiting_job(2, "a-[2-3]").start_time = scene.shot.now - Seconds{20};
  scene.waiting_job(3, "a-4").start_time = scene.shot.now - Seconds{10};
  scene.rounds(2);
  // There would be room for job 3, but job 2 was there first.
  CHECK(asked_jobs(scene) == Jobs{1});
  CHECK_THAT(scene.comment(2),
             ContainsSubstring("nodeset a is at its max_nodes 3, it is the next"));
  CHECK_THAT(scene.comment(3), ContainsSubstring("max_nodes 3, 1 job is before it"));
  scene.end_job(1);
  scene.state("a-[0-1]", kOff);
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{2, 3});
}

TEST_CASE("queue: a renewed request comes after those who have none, in the old one's slot") {
  Scene scene = crowd(3, 2);
  scene.set().resubmit_after = Seconds{300};
  scene.asked(1, "a-0").created = scene.shot.now - Seconds{400};
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{2, 1});
  CHECK_THAT(scene.comment(1), ContainsSubstring("waiting for 1 VM"));
  CHECK_THAT(scene.comment(3), ContainsSubstring("it is the next one"));
}

TEST_CASE("queue: a step takes the slot of the request before it where there is no other") {
  Scene scene = crowd(3, 2);
  scene.set().on_stockout = {{.wait = Seconds{30}, .zones = {"us-central1-f"}}};
  scene.asked(1, "a-0");
  scene.asked(2, "a-1");
  scene.rounds(2);
  const Jobs steps = asked_jobs(scene);
  CHECK(steps == Jobs{1, 2});
  std::vector<std::string> cancelled;
  for (const Action& action : scene.actions) {
    const auto* ask = std::get_if<AskForNodes>(&action.what);
    if (ask == nullptr) continue;
    CHECK(action.rule == Rule::Stockout);
    CHECK_THAT(action.why, ContainsSubstring("takes the place of the request before it"));
    for (const PlannedCancel& cancel : ask->plan.cancels)
      cancelled.push_back(cancel.group.text + "/" + cancel.request.text);
  }
  CHECK(cancelled == std::vector<std::string>{"hpc-a/j1-x", "hpc-a/j2-x"});
  // The one that has none is still the next.
  CHECK_THAT(scene.comment(3), ContainsSubstring("it is the next one"));
}

TEST_CASE("queue: with room a step is asked for beside the request before it") {
  Scene scene = crowd(1, 2);
  scene.set().on_stockout = {{.wait = Seconds{30}, .zones = {"us-central1-f"}}};
  scene.asked(1, "a-0");
  CHECK(scene.round() == Texts{"on_stockout ask a-0 job=1"});
  CHECK(std::get<AskForNodes>(scene.actions.front().what).plan.cancels.empty());
}

TEST_CASE("queue: a request that is being served is not given up for a step") {
  Scene scene = crowd(1, 1);
  scene.set().on_stockout = {{.wait = Seconds{30}, .zones = {"us-central1-f"}}};
  scene.asked(1, "a-0", RequestState::Creating);
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("queue: who waits for max_nodes freezes nobody's step, and flex-resume is told") {
  Scene scene{8};
  scene.set().max_nodes = 3;
  scene.set().on_stockout = {{.wait = Seconds{60}, .zones = {"us-central1-f"}}};
  scene.waiting_job(1, "a-[0-1]").start_time = scene.shot.now;
  scene.asked(1, "a-[0-1]").created = scene.shot.now;
  scene.waiting_job(2, "a-[2-3]").start_time = scene.shot.now;
  scene.rounds(2);
  CHECK(asked_jobs(scene).empty());
  CHECK(scene.waiting_nodesets == std::map<std::string, std::size_t>{{"a", 1}});
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{1});
}

TEST_CASE("queue: what others ask for at the same time counts for max_nodes") {
  Scene scene{8};
  scene.set().max_nodes = 3;
  scene.waiting_job(1, "a-[0-1]");
  scene.shot.asked = {{"a-5"}, {"a-6"}};
  scene.rounds(2);
  CHECK(asked_jobs(scene).empty());
  scene.shot.asked = {{"a-0"}, {"a-6"}};
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{1});
}

TEST_CASE("queue: a job that never fits beside the static nodes is given back, nobody waits") {
  Scene scene{8};
  scene.set().max_nodes = 4;
  scene.make_static("a-[0-1]");
  scene.running_job(9, "a-[0-1]");
  scene.vms("a-[0-1]");
  scene.waiting_job(1, "a-[2-4]").start_time = scene.shot.now - Seconds{30};
  scene.waiting_job(2, "a-[5-6]").start_time = scene.shot.now;
  scene.rounds(2);
  CHECK(asked_jobs(scene) == Jobs{2});
  CHECK(scene.waiting_nodesets.empty());
  std::vector<Refusal> refusals;
  for (const Action& action : scene.actions) {
    if (const auto* ask = std::get_if<AskForNodes>(&action.what))
      refusals.insert(refusals.end(), ask->plan.refusals.begin(), ask->plan.refusals.end());
  }
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].job == 1);
  CHECK(refusals[0].error.kind == ErrorKind::Invalid);
  CHECK_THAT(refusals[0].error.what, ContainsSubstring("beside 2 of its static nodes"));
}

TEST_CASE("queue: the first in line tries with all lanes of its race") {
  Scene scene{2};
  scene.set().race = 2;
  scene.waiting_job(1, "a-0");
  scene.memory.requests = {.limit = 1, .probes = 1, .learned = scene.shot.now};
  scene.asked(9, "a-1");
  scene.rounds(3);
  CHECK(asked_jobs(scene).empty());
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{1, 1});
}

TEST_CASE("queue: what was learned of the quota is forgotten after a quarter of an hour") {
  Scene scene{1};
  scene.memory.requests = {.limit = 1, .probes = 1, .learned = scene.shot.now};
  scene.rounds(59);
  CHECK(scene.memory.requests.limit == 1);
  scene.round();
  CHECK(scene.memory.requests.limit == 0);
}

TEST_CASE("queue: the parts of a heterogeneous job are asked for together") {
  Scene scene{4};
  scene.settings.api.max_active_requests = 2;
  scene.waiting_job(5, "a-0").het_job_id = 5;
  scene.waiting_job(6, "a-1").het_job_id = 5;
  scene.asked(9, "a-3");
  scene.rounds(2);
  CHECK(asked_jobs(scene).empty());
  CHECK_THAT(scene.comment(6), ContainsSubstring("its 2 requests are asked for together"));
  scene.owned().requests.clear();
  scene.round();
  CHECK(asked_jobs(scene) == Jobs{5, 6});
}
