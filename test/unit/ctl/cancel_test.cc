// SPDX-License-Identifier: GPL-2.0-or-later
// What flexctl cancel decides to do.
#include "ctl/cancel_plan.h"
#include "lib/slurm/hostlist.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

Result<CancelPlan> plan(const Scene& scene,
                        const std::string& request,
                        OnTimeout then = OnTimeout::Hold) {
  return plan_cancel(scene.settings, scene.shot, {.request = request, .then = then, .by = "ann"});
}

std::vector<std::string> texts(const CancelPlan& made) {
  std::vector<std::string> all = {std::string(kind_text(made.cancel)) + " " +
                                  target_of(made.cancel)};
  for (const Action& action : made.slurm) {
    std::string text{kind_text(action)};
    if (const JobId job = job_of(action); job != 0) text += " job=" + std::to_string(job);
    if (const auto names = nodes_of(action); !names.empty()) text += " " + fold_hostlist(names);
    all.push_back(text);
  }
  return all;
}

Error refused(const Scene& scene, const std::string& request) {
  const auto made = plan(scene, request);
  REQUIRE_FALSE(made);
  return made.error();
}

}  // namespace

TEST_CASE("cancel: exactly the request, its job is held and told, its nodes go", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  scene.waiting_job(8, "a-2");
  scene.asked(8, "a-2");
  const auto made = plan(scene, "j7-x");
  REQUIRE(made);
  CHECK(texts(*made) == Texts{"cancel_request hpc-a/j7-x",
                              "comment job=7",
                              "requeue_and_hold job=7 a-[0-1]",
                              "POWER_DOWN_FORCE a-[0-1]"});
  CHECK(
      std::get<TellJob>(made->slurm[0].what).comment ==
      "flex: no VMs: request j7-x was cancelled by ann; held, 'scontrol release' it to try again");
  CHECK(plan(scene, "hpc-a/j7-x"));
}

TEST_CASE("cancel: the job may be requeued or cancelled instead", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK(texts(*plan(scene, "j7-x", OnTimeout::Requeue))[2] == "requeue job=7 a-0");
  CHECK(texts(*plan(scene, "j7-x", OnTimeout::Cancel))[2] == "cancel_job job=7 a-0");
}

TEST_CASE("cancel: a job that cannot be requeued ends with its nodes", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-0").is_batch = false;
  scene.asked(7, "a-0");
  CHECK(texts(*plan(scene, "j7-x")) ==
        Texts{"cancel_request hpc-a/j7-x", "comment job=7", "POWER_DOWN_FORCE a-0"});
}

TEST_CASE("cancel: a job's other nodes that are on their way go, too", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  scene.asked(7, "a-[0-1]", RequestState::Accepted, "j7-x");
  scene.asked(7, "a-[2-3]", RequestState::Accepted, "j7-y");
  CHECK(texts(*plan(scene, "j7-x")).back() == "POWER_DOWN_FORCE a-[0-3]");
}

TEST_CASE("cancel: of a static node it says that it is asked for again", "[ctl]") {
  Scene scene;
  scene.make_static("a-0");
  scene.state("a-0", kComing);
  scene.asked(0, "a-0");
  const auto made = plan(scene, "j0-x");
  REQUIRE(made);
  CHECK(texts(*made) == Texts{"cancel_request hpc-a/j0-x", "POWER_DOWN_FORCE a-0"});
  CHECK_THAT(made->sentences[1], ContainsSubstring("asks for it again unless it is drained"));
}

TEST_CASE("cancel: where another request asks for the same nodes the job goes on waiting",
          "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0", RequestState::Accepted, "j7-x");
  scene.asked(7, "a-0", RequestState::Accepted, "j7-y");
  CHECK(texts(*plan(scene, "j7-x")) == Texts{"cancel_request hpc-a/j7-x"});
  // Another admin has just cancelled that one, and it is still listed.
  scene.shot.cancelled.push_back({.waiter = "a job 7",
                                  .restart_count = 0,
                                  .group = {"hpc-a"},
                                  .request = {"j7-y"},
                                  .by = "root",
                                  .since = {}});
  CHECK(texts(*plan(scene, "j7-x")).size() > 1);
  CHECK_FALSE(plan(scene, "j7-x")->not_again);
}

TEST_CASE("cancel: what cannot be cancelled is refused with what to do", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  const Error unknown = refused(scene, "j9-x");
  CHECK(unknown.kind == ErrorKind::NotFound);
  CHECK_THAT(unknown.what, ContainsSubstring("waiting: j7-x"));
  ResizeRequest& request = scene.owned().requests.front();
  request.state = RequestState::Succeeded;
  CHECK_THAT(refused(scene, "j7-x").what, ContainsSubstring("has been served"));
  request.state = RequestState::Provisioning;
  CHECK(refused(scene, "j7-x").kind == ErrorKind::Precondition);
  request.state = RequestState::Cancelled;
  CHECK_THAT(refused(scene, "j7-x").what, ContainsSubstring("cancelled already"));
  request.state = RequestState::Accepted;
  request.description = "somebody's";
  CHECK_THAT(refused(scene, "j7-x").what, ContainsSubstring("is not ours"));
}

TEST_CASE("cancel: one of several is not made again while its job waits", "[ctl]") {
  Scene scene;
  scene.waiting_job(7, "a-0").restart_count = 2;
  scene.asked(7, "a-0");
  SweptGroup& lane = scene.owned("hpc-a-zb");
  ResizeRequest other = request("j7-y", RequestState::Accepted, names_in("a-0"));
  other.group = lane.group.name;
  other.description = request_description(7, other.nodes, {.is_race = true});
  lane.requests.push_back(other);
  const auto made = plan(scene, "j7-y");
  REQUIRE(made);
  CHECK(made->slurm.empty());
  REQUIRE(made->not_again);
  CHECK(made->not_again->waiter == "a job 7");
  CHECK(made->not_again->restart_count == 2);
  CHECK(made->not_again->group.text == "hpc-a-zb");
  CHECK(made->sentences.back() == "nothing is asked for in group hpc-a-zb again while job 7 waits");
  CHECK(plan(scene, "j7-x")->slurm.empty());
}
