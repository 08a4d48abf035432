// SPDX-License-Identifier: GPL-2.0-or-later
// Ways that cannot be taken: zones that never serve, requests that fail beside others, what an
// admin has cancelled; static nodes, and groups that the config has left.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

const ProviderError kNever{.code = "QUEUING_INFEASIBLE_NO_CAPACITY", .message = "never here"};
const ProviderError kLate{.code = "LIMIT_EXCEEDED",
                          .message = "could not provision queued instances in the allocated time"};

ResizeRequest& asked_in(Scene& scene,
                        const std::string& group,
                        JobId id,
                        const std::string& hostlist,
                        const RequestWay& way,
                        const std::optional<ProviderError>& error = {}) {
  SweptGroup& home = scene.owned(group);
  const auto members = names_in(hostlist);
  ResizeRequest made = request("j" + std::to_string(id) + "-" + group,
                               error ? RequestState::Failed : RequestState::Accepted,
                               members);
  made.group = home.group.name;
  made.description = request_description(id, members, way);
  made.created = scene.shot.now;
  made.run_duration = std::chrono::minutes{75};
  made.error = error;
  if (made.is_active())
    for (const NodeName& member : members) home.instances.push_back(queued(member));
  home.requests.push_back(made);
  return home.requests.back();
}

void two_steps(Scene& scene) {
  scene.set().on_stockout = {{.wait = Seconds{3600}, .zones = {"us-central1-c"}},
                             {.wait = Seconds{3600}, .zones = {"us-central1-d"}}};
}

std::vector<std::string> groups_asked(const Scene& scene) {
  std::vector<std::string> names;
  for (const Action& action : scene.actions) {
    if (const auto* ask = std::get_if<AskForNodes>(&action.what)) {
      for (const GroupPlan& group : ask->plan.groups) names.push_back(group.spec.name.text);
    }
  }
  return names;
}

CancelledWay cancelled(const Scene& scene, const std::string& group) {
  return {.waiter = "a job 7",
          .group = {group},
          .request = {"j7-" + group},
          .by = "ann",
          .since = scene.shot.now};
}

}  // namespace

TEST_CASE("on_stockout: a zone that can never serve takes the next step at once") {
  Scene scene;
  two_steps(scene);
  scene.waiting_job(7, "a-[0-1]");
  asked_in(scene, "hpc-a", 7, "a-[0-1]", {}, kNever);
  CHECK(scene.round() == Texts{"on_stockout ask a-[0-1] job=7"});
  CHECK(groups_asked(scene) == Texts{"hpc-a-s1"});
  // Again: at once.
  asked_in(scene, "hpc-a-s1", 7, "a-[0-1]", {.step = 1}, kNever);
  CHECK(scene.round() ==
        Texts{"failed_request delete_request @hpc-a/j7-hpc-a", "on_stockout ask a-[0-1] job=7"});
  CHECK(groups_asked(scene) == Texts{"hpc-a-s2"});
  // After the last the job is held.
  asked_in(scene, "hpc-a-s2", 7, "a-[0-1]", {.step = 2}, kNever);
  const Texts last = scene.round();
  CHECK(std::find(last.begin(), last.end(), "failed_request give_job_back a-[0-1] job=7") !=
        last.end());
}

TEST_CASE("on_stockout: without another entry a zone that can never serve holds the job") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {}, kNever);
  const Texts texts = scene.round();
  CHECK(std::find(texts.begin(), texts.end(), "failed_request give_job_back a-0 job=7") !=
        texts.end());
}

TEST_CASE("on_stockout: other errors for good hold the job, whatever it says") {
  Scene scene;
  two_steps(scene);
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {}, ProviderError{.code = "PERMISSION_DENIED"});
  const Texts texts = scene.round();
  CHECK(std::find(texts.begin(), texts.end(), "failed_request give_job_back a-0 job=7") !=
        texts.end());
}

TEST_CASE("race: a zone that can never serve is out, the others go on") {
  Scene scene;
  scene.set().race = 2;
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a-za", 7, "a-0", {.is_race = true}, kNever);
  asked_in(scene, "hpc-a-zb", 7, "a-0", {.is_race = true});
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"failed_request delete_request @hpc-a-za/j7-hpc-a-za"});
  scene.owned("hpc-a-za").requests.clear();
  for (int i = 0; i < 20; ++i) CHECK(scene.round(Seconds{60}).empty());
}

TEST_CASE("resubmit: a renewal that failed is made again after a pause, then after a longer one") {
  Scene scene;
  scene.set().resubmit_after = Seconds{30};
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {});
  CHECK(scene.round(Seconds{30}) == Texts{"resubmit ask a-0 job=7"});
  asked_in(scene, "hpc-a-r", 7, "a-0", {.attempt = 2, .renewed = 1}, kLate);
  // What has just failed is seen by the rules after this one.
  scene.round();
  CHECK(scene.round() == Texts{"failed_request delete_request @hpc-a-r/j7-hpc-a-r"});
  scene.owned("hpc-a-r").requests.clear();
  CHECK(scene.round().empty());
  CHECK(scene.round(Seconds{30}) == Texts{"resubmit ask a-0 job=7"});
  // In its comment, while it lasts.
  asked_in(scene, "hpc-a-r", 7, "a-0", {.attempt = 2, .renewed = 1}, kLate);
  scene.round();
  scene.owned("hpc-a-r").requests.clear();
  scene.round(Seconds{60});
  CHECK(scene.comment(7).find("another request for them failed: could not provision") !=
        std::string::npos);
  CHECK(scene.round(Seconds{45}).empty());
  CHECK(scene.round(Seconds{30}) == Texts{"resubmit ask a-0 job=7"});
}

TEST_CASE("on_stockout: a step that failed while the first request goes on waits for its pause") {
  Scene scene;
  scene.set().on_stockout = {{.wait = Seconds{15}, .zones = {"us-central1-c"}}};
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {});
  scene.round();
  CHECK(scene.round() == Texts{"on_stockout ask a-0 job=7"});
  asked_in(scene, "hpc-a-s1", 7, "a-0", {.step = 1}, kLate);
  scene.round();
  scene.owned("hpc-a-s1").requests.clear();
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round() == Texts{"on_stockout ask a-0 job=7"});
}

TEST_CASE("a zone of a race that an admin has cancelled stays so, for this wait") {
  Scene scene;
  scene.set().race = 2;
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a-zb", 7, "a-0", {.is_race = true});
  scene.shot.cancelled = {cancelled(scene, "hpc-a-za")};
  for (int i = 0; i < 10; ++i) CHECK(scene.round(Seconds{60}).empty());
  SECTION("also when flexctl has dropped its line") {
    scene.shot.cancelled.clear();
    CHECK(scene.rounds(3, Seconds{60}).empty());
  }
  SECTION("not in the job's next life") {
    scene.shot.jobs.items[0].restart_count = 1;
    CHECK(scene.rounds(2, Seconds{60}) == Texts{"unrequested_node ask a-0 job=7"});
    CHECK(groups_asked(scene) == Texts{"hpc-a-za"});
  }
  SECTION("not when nothing else is left") {
    scene.owned("hpc-a-zb").requests.clear();
    scene.owned("hpc-a-zb").instances.clear();
    CHECK(scene.rounds(2) == Texts{"unrequested_node ask a-0 job=7"});
    CHECK(groups_asked(scene) == Texts{"hpc-a-zb"});
  }
}

TEST_CASE("a step or a renewal that an admin has cancelled stays so") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {});
  SECTION("a step: the next comes after its wait") {
    scene.set().on_stockout = {{.wait = Seconds{15}, .zones = {"us-central1-c"}},
                               {.wait = Seconds{600}, .zones = {"us-central1-d"}}};
    scene.shot.cancelled = {cancelled(scene, "hpc-a-s1")};
    CHECK(scene.rounds(10).empty());
    CHECK(scene.round(Seconds{600}) == Texts{"on_stockout ask a-0 job=7"});
    CHECK(groups_asked(scene) == Texts{"hpc-a-s2"});
  }
  SECTION("a step: so does a sweeper that is started again before each round") {
    scene.set().on_stockout = {{.wait = Seconds{15}, .zones = {"us-central1-c"}},
                               {.wait = Seconds{120}, .zones = {"us-central1-d"}}};
    scene.shot.cancelled = {cancelled(scene, "hpc-a-s1")};
    Texts done;
    for (int i = 0; i < 20 && done.empty(); ++i) {
      scene.memory = *parse_memory(to_text(scene.memory));
      done = scene.round();
    }
    CHECK(done == Texts{"on_stockout ask a-0 job=7"});
    CHECK(groups_asked(scene) == Texts{"hpc-a-s2"});
  }
  SECTION("a renewal") {
    scene.set().resubmit_after = Seconds{30};
    scene.shot.cancelled = {cancelled(scene, "hpc-a-r")};
    CHECK(scene.rounds(10).empty());
  }
}

TEST_CASE("a static node is asked for by itself, for as long as it can live, whoever is on it") {
  Scene scene;
  scene.make_static("a-0");
  scene.waiting_job(7, "a-[0-1]");
  scene.rounds(2);
  std::map<std::string, Seconds> runs;
  for (const Action& action : scene.actions) {
    const auto* ask = std::get_if<AskForNodes>(&action.what);
    if (ask == nullptr) continue;
    for (const GroupPlan& group : ask->plan.groups) {
      for (const PlannedRequest& request : group.requests)
        runs[fold_hostlist(request.spec.nodes)] = request.spec.run_duration;
    }
  }
  CHECK(runs == std::map<std::string, Seconds>{{"a-0", kMaxRunDuration},
                                               {"a-1", std::chrono::minutes{75}}});
}

TEST_CASE("a static node's short request of an older release is made anew for longer") {
  Scene scene;
  scene.make_static("a-0");
  scene.waiting_job(7, "a-0");
  asked_in(scene, "hpc-a", 7, "a-0", {});
  const Texts texts = scene.rounds(2);
  CHECK(std::find(texts.begin(), texts.end(), "resubmit ask a-0") != texts.end());
}

TEST_CASE("empty_mig: a group that the config has left goes, however busy its nodeset is") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.owned("hpc-a").group.zones = {"us-central1-f"};
  SweptGroup& now = scene.owned("hpc-a-c123456");
  now.group.zones = scene.set().zones;
  asked_in(scene, "hpc-a-c123456", 7, "a-0", {});
  scene.round();
  CHECK(scene.round(scene.settings.sweeper.empty_mig_grace) ==
        Texts{"empty_mig delete_group @hpc-a"});
  scene.owned("hpc-a").group.zones = scene.set().zones;
  CHECK(scene.rounds(3, scene.settings.sweeper.empty_mig_grace / 2).empty());
}
