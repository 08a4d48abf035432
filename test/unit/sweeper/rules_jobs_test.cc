// SPDX-License-Identifier: GPL-2.0-or-later
// job_note: what a job's author reads.
#include "lib/core/job_note.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <cstdlib>
#include <ctime>

using namespace flex;
using namespace flex::test;

namespace {

/// 2027-01-15T08:00:00Z is the scene's time.
const Utc kUtc;

}  // namespace

TEST_CASE("job_note: a waiting job is told since when, which attempt, and Google's estimate") {
  Scene scene;
  scene.waiting_job(7, "a-[0-3]");
  ResizeRequest& request = scene.asked(7, "a-[0-3]");
  scene.raw_round();
  CHECK(scene.comment(7) == "flex: waiting for 4 VMs in us-central1 since 07:59 (attempt 1)");
  request.last_attempt = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED",
                          .message = "no capacity",
                          .estimated_availability = scene.shot.now + std::chrono::minutes{90}};
  scene.raw_round();
  CHECK(scene.comment(7) ==
        "flex: waiting for 4 VMs in us-central1 since 07:59 (attempt 1), Google estimates 09:30");
}

TEST_CASE("job_note: a quota is named") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0").last_attempt = {.code = "QUOTA_EXCEEDED",
                                        .message =
                                            "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded. "
                                            " Limit: 8.0 in region us-central1."};
  scene.raw_round();
  CHECK(scene.comment(7) ==
        "flex: waiting for 1 VM in us-central1 since 07:59 (attempt 1): quota "
        "PREEMPTIBLE_NVIDIA_H100_GPUS is used up (limit 8), ask for more or wait");
}

TEST_CASE("job_note: at most one comment a minute, and none that says the same") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  ResizeRequest& request = scene.asked(7, "a-0");
  scene.raw_round();
  const std::string first = scene.comment(7);
  REQUIRE_FALSE(first.empty());
  scene.shot.jobs.items[0].admin_comment = first;
  scene.memory.notes[7] = scene.shot.now;
  scene.raw_round();
  CHECK(scene.comment(7).empty());
  request.last_attempt = {.code = "QUOTA_EXCEEDED", .message = "x"};
  scene.raw_round();
  CHECK(scene.comment(7).empty());
  scene.raw_round(Seconds{60});
  CHECK_FALSE(scene.comment(7).empty());
}

TEST_CASE("job_note: that the VMs have come is told at once, and then no more often than before") {
  Scene scene;
  scene.running_job(7, "a-0").admin_comment =
      "flex: waiting for 1 VM in us-central1 since 07:59 (attempt 1)";
  scene.memory.notes[7] = scene.shot.now;
  scene.vms("a-0");
  scene.entry("a-0").terminates = scene.shot.now + std::chrono::hours{5};
  scene.raw_round(Seconds{1});
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T13:00");
  scene.shot.jobs.items[0].admin_comment = scene.comment(7);
  scene.memory.notes[7] = scene.shot.now;
  scene.entry("a-0").terminates = scene.shot.now + std::chrono::hours{6};
  scene.raw_round(Seconds{1});
  CHECK(scene.comment(7).empty());
  scene.settings.sweeper.note_interval = Seconds{1};
  scene.raw_round(Seconds{1});
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T14:00");
}

TEST_CASE("job_note: when it gives up, and what of its wishes cannot be") {
  Scene scene;
  scene.set().dws_flex.max_run_duration = std::chrono::hours{2};
  scene.waiting_job(7, "a-0").comment = "flex(run=3h,wait=30m,ontimeout=never)";
  scene.asked(7, "a-0").run_duration = std::chrono::hours{2};
  scene.raw_round();
  CHECK(scene.comment(7) ==
        "flex: waiting for 1 VM in us-central1 since 07:59 (attempt 1), gives up at 08:29; asked "
        "for VMs that live 03:00:00, but here they live 02:00:00 from their start; ignored: "
        "ontimeout=never: write requeue, hold or cancel");
}

TEST_CASE("job_note: whoever has waited longest for a word is told first") {
  constexpr int kJobs = 120;
  Scene scene(kJobs);
  for (int i = 0; i < kJobs; ++i) {
    const std::string node = "a-" + std::to_string(i);
    scene.waiting_job(static_cast<JobId>(i + 1), node);
    scene.asked(static_cast<JobId>(i + 1), node);
    // All but the last have been told before.
    if (i + 1 < kJobs)
      scene.memory.notes[static_cast<JobId>(i + 1)] = scene.shot.now - Seconds{600 - i};
  }
  scene.raw_round();
  CHECK_FALSE(scene.comment(1).empty());
  CHECK_FALSE(scene.comment(99).empty());
  CHECK(scene.comment(100).empty());
  CHECK_FALSE(scene.comment(kJobs).empty());
}

TEST_CASE("job_note: what others wrote stays") {
  Scene scene;
  scene.waiting_job(7, "a-0").admin_comment = "ticket 12";
  scene.asked(7, "a-0");
  scene.raw_round();
  CHECK(scene.comment(7) ==
        "ticket 12 | flex: waiting for 1 VM in us-central1 since 07:59 (attempt 1)");
}

TEST_CASE("job_note: a running job is told when the first of its VMs ends") {
  Scene scene;
  scene.running_job(7, "a-[0-1]");
  scene.vms("a-[0-1]");
  scene.entry("a-0").terminates = scene.shot.now + std::chrono::hours{5};
  scene.entry("a-1").terminates = scene.shot.now + std::chrono::hours{4};
  scene.raw_round();
  CHECK(scene.comment(7) == "flex: VMs end 2027-01-15T12:00");
}

TEST_CASE(
    "job_note: a capped job is told that as well, one between two attempts when the next is") {
  Scene scene;
  scene.waiting_job(7, "a-0", std::chrono::hours{24 * 8});
  scene.asked(7, "a-0").run_duration = kMaxRunDuration;
  scene.waiting_job(8, "a-1");
  scene.asked(8, "a-1", RequestState::Failed).error = {.code = "ZONE_RESOURCE_POOL_EXHAUSTED",
                                                       .message = "no capacity"};
  scene.raw_round();
  CHECK_THAT(scene.comment(7), ContainsSubstring("; time limit 8-00:00:00 capped"));
  CHECK_THAT(scene.comment(8), StartsWith("flex: attempt 1 failed: no capacity"));
  CHECK_THAT(scene.comment(8), EndsWith("; the next one is at 2027-01-15T08:01"));
}

TEST_CASE("job_note: jobs on other nodes, pending and finished ones are left alone") {
  Scene scene;
  Job pending = job(7, nodes("a", 1), Seconds{60});
  pending.is_pending = true;
  pending.is_running = false;
  scene.shot.jobs.items.push_back(pending);
  scene.shot.jobs.items.push_back(job(8, nodes("other", 2), Seconds{60}));
  CHECK(scene.raw_round().empty());
}
