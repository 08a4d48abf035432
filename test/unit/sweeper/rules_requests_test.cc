// SPDX-License-Identifier: GPL-2.0-or-later
// Rules about requests: stale_request, failed_request, provision_timeout.
#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

TEST_CASE(
    "stale_request: a cancelled job's request is cancelled, its nodes given back, the other's "
    "stays") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.waiting_job(8, "a-[2-3]");
  scene.asked(7, "a-[0-1]");
  scene.asked(8, "a-[2-3]");
  CHECK(scene.rounds(2).empty());
  scene.end_job(7);
  scene.state("a-[0-1]", kComing);
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"stale_request cancel_request a-[0-1] @hpc-a/j7-x job=7",
                               "stale_request POWER_DOWN_FORCE a-[0-1]"});
}

TEST_CASE("stale_request: one that is being created or served is not cancelled yet") {
  for (const RequestState state : {RequestState::Creating, RequestState::Provisioning}) {
    Scene scene;
    scene.asked(7, "a-0", state);
    CHECK(scene.rounds(5).empty());
  }
}

TEST_CASE(
    "stale_request: another job that was put on the nodes keeps the request if it lives long "
    "enough") {
  Scene scene;
  scene.waiting_job(9, "a-[0-1]", std::chrono::minutes{30});
  scene.asked(7, "a-[0-1]");
  CHECK(scene.rounds(3).empty());
  scene.shot.jobs.items[0].time_limit = std::chrono::hours{8};
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-[0-1] @hpc-a/j7-x job=7"});
}

TEST_CASE("stale_request: a request of which only some nodes are wanted would never fit") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-[0-1]");
  scene.state("a-1", kComing);
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-[0-1] @hpc-a/j7-x job=7",
                                 "stale_request POWER_DOWN_FORCE a-1"});
}

TEST_CASE("stale_request: jobless requests are wanted while their node is coming up, or static") {
  Scene scene;
  scene.make_static("a-1");
  scene.state("a-0", kComing);
  scene.state("a-1", kComing);
  scene.asked(0, "a-0", RequestState::Accepted, "j0-a");
  scene.asked(0, "a-1", RequestState::Accepted, "j0-b");
  CHECK(scene.rounds(3).empty());
  scene.state("a-0", kOff);
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request a-0 @hpc-a/j0-a"});
}

TEST_CASE("stale_request: a request that is not ours is left alone") {
  Scene scene;
  scene.asked(7, "a-0").description = "made by hand";
  CHECK(scene.rounds(5).empty());
}

TEST_CASE("failed_request: a time-out is followed by the next attempt after a pause") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  ResizeRequest& failed = scene.asked(7, "a-[0-1]", RequestState::Failed);
  failed.error = {
      .code = "LIMIT_EXCEEDED",
      .message = "Resize request could not provision queued instances in the allocated time."};
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"failed_request ask a-[0-1] job=7"});
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  CHECK(ask.plan.groups[0].requests[0].key.attempt == 2);
  CHECK(scene.memory.retries.at({"a-0"}).attempts == 1);
  // The failed one goes when the next one is in.
  scene.asked(7, "a-[0-1]", RequestState::Accepted, "j7-second");
  CHECK(scene.rounds(2) == Texts{"failed_request delete_request @hpc-a/j7-x"});
}

TEST_CASE("failed_request: the attempt's number goes on though the first failed one is deleted") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "no capacity"};
  failed.description = request_description(7, nodes("a", 1), {.attempt = 2, .failures = 1});
  CHECK(scene.rounds(8).empty());
  CHECK(scene.round() == Texts{"failed_request ask a-0 job=7"});
  const auto& ask = std::get<AskForNodes>(scene.actions.front().what);
  CHECK(ask.plan.groups[0].requests[0].key.attempt == 3);
}

TEST_CASE("failed_request: after the limit the job is given back") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  ResizeRequest& failed = scene.asked(7, "a-0", RequestState::Failed);
  failed.error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "no capacity"};
  failed.description = request_description(7, nodes("a", 1), {.attempt = 3, .failures = 2});
  CHECK(scene.round() == Texts{"failed_request give_job_back a-0 job=7",
                               "failed_request delete_request @hpc-a/j7-x"});
  CHECK_THAT(std::get<GiveJobBack>(scene.actions.front().what).error.what,
             StartsWith("3 attempts failed, the last with: no capacity"));
}

TEST_CASE("failed_request: refusals for want of quota are no attempts") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.memory.retries[{"a-0"}] = {.attempts = 0, .refusals = 9, .next = {}, .why = "quota"};
  scene.asked(7, "a-0", RequestState::Failed).error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED",
                                                       .message = "x"};
  CHECK(scene.rounds(4).empty());
  CHECK(scene.round() == Texts{"failed_request ask a-0 job=7"});
}

TEST_CASE("failed_request: trouble is forgotten when the VM is there or the job is gone") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.memory.retries[{"a-0"}] = {.attempts = 2, .refusals = 0, .next = {}, .why = "x"};
  scene.memory.retries[{"a-1"}] = {.attempts = 2, .refusals = 0, .next = {}, .why = "x"};
  scene.vms("a-0");
  scene.state("a-1", kOff);
  scene.round();
  CHECK(scene.memory.retries.empty());
}

TEST_CASE("provision_timeout: a job that shares a node keeps it") {
  Scene scene;
  scene.set().provision_timeout = Seconds{10};
  scene.waiting_job(7, "a-[0-1]");
  scene.waiting_job(8, "a-1");
  scene.asked(7, "a-0");
  scene.asked(8, "a-1").created = scene.shot.now + Seconds{100};
  CHECK(scene.round() == Texts{"provision_timeout cancel_request a-0 @hpc-a/j7-x job=7",
                               "provision_timeout comment job=7",
                               "provision_timeout requeue a-0 job=7",
                               "provision_timeout POWER_DOWN_FORCE a-0"});
}

TEST_CASE(
    "failed_request: what cannot be mended by waiting is given back at once, another job's not") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.waiting_job(8, "a-[2-3]");
  scene.asked(8, "a-[2-3]");
  scene.asked(7, "a-[0-1]", RequestState::Failed).error = {.code = "INVALID_ARGUMENT",
                                                           .message = "bad"};
  CHECK(scene.round() == Texts{"failed_request give_job_back a-[0-1] job=7",
                               "failed_request delete_request @hpc-a/j7-x"});
}

TEST_CASE("failed_request: a static node is tried for ever") {
  Scene scene;
  scene.make_static("a-0");
  scene.state("a-0", kComing);
  ResizeRequest& failed = scene.asked(0, "a-0", RequestState::Failed);
  failed.description = request_description(0, nodes("a", 1), {.attempt = 40, .failures = 39});
  failed.error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "no capacity"};
  CHECK(scene.rounds(120).empty());
  CHECK(scene.round() == Texts{"failed_request ask a-0"});
}

TEST_CASE(
    "failed_request: one that nobody waits for is deleted, one whose node has a new request too") {
  Scene scene;
  scene.asked(7, "a-0", RequestState::Failed);
  scene.waiting_job(8, "a-1");
  scene.asked(8, "a-1", RequestState::Failed, "j8-old");
  scene.asked(8, "a-1", RequestState::Accepted, "j8-new");
  CHECK(scene.round().empty());
  CHECK(scene.round() == Texts{"failed_request delete_request @hpc-a/j7-x",
                               "failed_request delete_request @hpc-a/j8-old"});
}

TEST_CASE("provision_timeout: cancelled and requeued, the other job's request stays") {
  Scene scene;
  scene.set().provision_timeout = Seconds{100};
  scene.waiting_job(7, "a-[0-1]");
  scene.waiting_job(8, "a-[2-3]");
  scene.asked(7, "a-[0-1]").created = scene.shot.now - Seconds{90};
  scene.asked(8, "a-[2-3]").created = scene.shot.now;
  CHECK(scene.round(Seconds{5}).empty());
  CHECK(scene.round() == Texts{"provision_timeout cancel_request a-[0-1] @hpc-a/j7-x job=7",
                               "provision_timeout comment job=7",
                               "provision_timeout requeue a-[0-1] job=7",
                               "provision_timeout POWER_DOWN_FORCE a-[0-1]"});
  CHECK(scene.comment(7) == "flex: no VMs within provision_timeout 00:01:40; back in the queue");
}

TEST_CASE("provision_timeout: on_timeout hold, a job that cannot be requeued, and none at all") {
  Scene scene;
  scene.set().provision_timeout = Seconds{10};
  scene.set().on_timeout = OnTimeout::Hold;
  scene.waiting_job(7, "a-0");
  scene.waiting_job(8, "a-1").may_requeue = false;
  scene.asked(7, "a-0");
  scene.asked(8, "a-1");
  const Texts texts = scene.round();
  CHECK(std::count(texts.begin(), texts.end(), "provision_timeout requeue_and_hold a-0 job=7") ==
        1);
  CHECK(std::count(texts.begin(), texts.end(), "provision_timeout POWER_DOWN_FORCE a-1") == 1);
  CHECK(texts.size() == 7);
  Scene patient;
  patient.waiting_job(7, "a-0");
  patient.asked(7, "a-0").created = patient.shot.now - std::chrono::hours{500};
  CHECK(patient.rounds(3).empty());
}

TEST_CASE(
    "provision_timeout: a job's own wait, shorter than the nodeset's or where that has none") {
  Scene scene;
  scene.waiting_job(7, "a-0").comment = "Monday flex(wait=70s,ontimeout=cancel)";
  scene.waiting_job(8, "a-1").comment = "flex(wait=10m)";
  scene.asked(7, "a-0");
  scene.asked(8, "a-1");
  CHECK(scene.round() == Texts{"provision_timeout cancel_request a-0 @hpc-a/j7-x job=7",
                               "provision_timeout comment job=7",
                               "provision_timeout cancel_job a-0 job=7",
                               "provision_timeout POWER_DOWN_FORCE a-0"});
  CHECK(scene.comment(7) ==
        "flex: no VMs within the job's max-wait 00:01:10; cancelled, submit it again to try again");
  Scene limited;
  limited.set().provision_timeout = Seconds{70};
  limited.waiting_job(7, "a-0").comment = "flex(wait=7d,ontimeout=hold)";
  limited.asked(7, "a-0");
  limited.raw_round();
  CHECK(limited.comment(7) ==
        "flex: no VMs within provision_timeout 00:01:10; held, 'scontrol release' it to try again");
}

TEST_CASE("provision_timeout: a static node's request outlasts the job that waits for it") {
  Scene scene;
  scene.make_static("a-0");
  scene.waiting_job(7, "a-0").comment = "flex(wait=10s,ontimeout=cancel)";
  scene.asked(0, "a-0");
  CHECK(scene.round() ==
        Texts{"provision_timeout comment job=7", "provision_timeout cancel_job a-0 job=7"});
}

TEST_CASE("provision_timeout: all parts of a heterogeneous job are told") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.waiting_job(8, "a-1").comment = "flex(wait=10s,ontimeout=hold)";
  for (Job& part : scene.shot.jobs.items) part.het_job_id = 7;
  scene.vms("a-0");
  scene.asked(8, "a-1");
  scene.raw_round();
  CHECK(
      scene.comment(7) ==
      "flex: no VMs within the job's max-wait 00:00:10; held, 'scontrol release' it to try again");
  CHECK(scene.comment(8) == scene.comment(7));
}

TEST_CASE("provision_timeout: an interactive job is told that it ends") {
  Scene scene;
  Job& job = scene.waiting_job(7, "a-0");
  job.comment = "flex(wait=10s)";
  job.is_batch = false;
  scene.asked(7, "a-0");
  CHECK(scene.round().size() == 3);
  CHECK(scene.comment(7) ==
        "flex: no VMs within the job's max-wait 00:00:10; ended, it may not be requeued; submit it "
        "again to try again");
}

TEST_CASE("provision_timeout: who shares a request leaves it to the more patient") {
  Scene scene;
  scene.waiting_job(7, "a-0").comment = "flex(wait=10s)";
  scene.waiting_job(8, "a-0").comment = "flex(wait=10m)";
  scene.asked(7, "a-0");
  CHECK(scene.round() ==
        Texts{"provision_timeout comment job=7", "provision_timeout requeue a-0 job=7"});
  scene.shot.jobs.items[0].is_batch = false;
  CHECK(scene.round() ==
        Texts{"provision_timeout comment job=7", "provision_timeout cancel_job a-0 job=7"});
}

TEST_CASE("provision_timeout: a job that came later to a request has not waited as long as that") {
  Scene scene;
  Job& job = scene.waiting_job(7, "a-0");
  job.comment = "flex(wait=30s)";
  job.start_time = scene.shot.now;
  scene.asked(6, "a-0").created = scene.shot.now - Seconds{600};
  CHECK(scene.round().empty());
  CHECK(scene.round().size() == 4);
}

TEST_CASE("provision_timeout: a static node keeps its place in the queue") {
  Scene scene;
  scene.make_static("a-0");
  scene.set().provision_timeout = Seconds{10};
  scene.state("a-0", kComing);
  scene.asked(0, "a-0");
  CHECK(scene.rounds(3).empty());
}

TEST_CASE("stale_request: one that names no nodes is judged by its job") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  ResizeRequest& request = scene.asked(7, "a-[0-1]");
  request.nodes.clear();
  request.description = "slurm-flex-start job=7";
  CHECK(scene.rounds(3).empty());
  scene.end_job(7);
  scene.state("a-[0-1]", kComing);
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request @hpc-a/j7-x job=7"});
}

TEST_CASE(
    "stale_request: nodes taken out of the config keep their request while Slurm wants them") {
  Scene scene;
  Node other;
  other.name = {"b-0"};
  other.state = kComingForJob;
  scene.shot.nodes.items.push_back(other);
  scene.asked(7, "b-0");
  CHECK(scene.rounds(4).empty());
  scene.shot.nodes.items.back().state = kOff;
  CHECK(scene.rounds(2) == Texts{"stale_request cancel_request b-0 @hpc-a/j7-x job=7"});
}

TEST_CASE("provision_timeout: a request whose age Google does not tell is not over") {
  Scene scene;
  scene.set().provision_timeout = Seconds{10};
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0").created = {};
  CHECK(scene.rounds(3).empty());
}
