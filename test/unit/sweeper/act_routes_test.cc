// SPDX-License-Identifier: GPL-2.0-or-later
// What the sweeper remembers of requests that were refused.
#include "sweeper/act.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

struct Stage {
  Scene scene{4};
  FakeCloud cloud{};
  FakeScheduler slurm{};

  Stage() { cloud.add_group("hpc-a", ownership_mark("hpc", "a")); }

  ActReport carry_out() {
    slurm.nodes = scene.shot.nodes.items;
    slurm.jobs = scene.shot.jobs.items;
    const Log log{[](LogLevel, std::string_view) {}, LogLevel::Debug};
    Actor actor{.config = scene.settings,
                .shot = scene.shot,
                .cloud = cloud,
                .scheduler = slurm,
                .memory = scene.memory,
                .log = log,
                .serial_dir = {},
                .should_stop = [] { return false; }};
    return act(actor, scene.actions);
  }
};

}  // namespace

TEST_CASE("act: a refusal that is the zone's takes the next step in the next round") {
  Stage stage;
  Scene& scene = stage.scene;
  scene.owned();
  scene.set().on_stockout = {{.wait = Seconds{3600}, .zones = {"us-central1-c"}}};
  scene.waiting_job(7, "a-0");
  scene.rounds(2);
  stage.cloud.next_operation_error(
      "insert_request", {.code = "INVALID_MACHINE_TYPE", .message = "not supported in this zone"});
  stage.carry_out();
  CHECK(stage.slurm.updates.empty());
  CHECK(scene.round() == Texts{"on_stockout ask a-0 job=7"});
  // The last one: the job is held.
  stage.cloud.next_operation_error(
      "insert_request", {.code = "INVALID_MACHINE_TYPE", .message = "not supported in this zone"});
  stage.carry_out();
  REQUIRE(stage.slurm.updates.size() == 3);
  CHECK(stage.slurm.updates[1].what == "requeue_hold");
}

TEST_CASE("act: a renewal that is refused for the quota is not tried in every round") {
  Stage stage;
  Scene& scene = stage.scene;
  scene.set().resubmit_after = Seconds{30};
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  REQUIRE(scene.round(Seconds{30}) == Texts{"resubmit ask a-0 job=7"});
  stage.cloud.next_operation_error(
      "insert_request",
      {.code = "QUOTA_EXCEEDED", .message = "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded."});
  CHECK(stage.carry_out().waiting == 0);
  CHECK(scene.rounds(3).empty());
  CHECK(scene.round() == Texts{"resubmit ask a-0 job=7"});
}

TEST_CASE("act: static nodes that bulkInsert refuses together wait together") {
  Stage stage;
  Scene& scene = stage.scene;
  scene.set().mode = Mode::BulkInsert;
  scene.make_static("a-[0-2]");
  scene.state("a-[0-2]", kComing);
  scene.rounds(2);
  stage.cloud.next_error("bulk_insert", {ErrorKind::NoCapacity, "none"});
  stage.carry_out();
  for (const NodeName& node : nodes("a", 3))
    CHECK(scene.memory.retries.at(node).next == scene.shot.now + scene.set().retry.base);
}
