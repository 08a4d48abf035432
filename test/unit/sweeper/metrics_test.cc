// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/metrics.h"

#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

using Milliseconds = std::chrono::milliseconds;

namespace {

struct Meter {
  Scene scene{};
  Metrics metrics{};
  Status status{};

  std::string look(Seconds later = Seconds{15}) {
    scene.shot.now += later;
    metrics.note_look(scene.settings, scene.shot);
    return text();
  }

  [[nodiscard]] std::string text() const {
    return metrics.text({.config = scene.settings,
                         .shot = scene.shot,
                         .memory = scene.memory,
                         .status = status,
                         .waiting = 2});
  }
};

bool has(const std::string& text, const std::string& line) {
  return text.find("\n" + line + "\n") != std::string::npos;
}

Event event(const std::string& program, const std::string& what) {
  Event made;
  made.program = program;
  made.what = what;
  return made;
}

}  // namespace

TEST_CASE("metrics: gauges tell the look") {
  Meter meter;
  meter.scene.waiting_job(7, "a-[0-1]");
  meter.scene.asked(7, "a-[0-1]");
  meter.scene.vms("a-2");
  meter.scene.running_job(8, "a-2").end_time = meter.scene.shot.now + std::chrono::hours{2};
  meter.scene.entry("a-2").terminates = meter.scene.shot.now + Seconds{1815};
  meter.scene.memory.stopped["a"].why = "boots fail";
  meter.status.leaks = {{.kind = "vm", .target = "x", .since = {}, .why = "y"}};
  const std::string text = meter.look();
  CHECK(has(text, "flex_start_nodes{nodeset=\"a\",state=\"waiting\"} 2"));
  CHECK(has(text, "flex_start_nodes{nodeset=\"a\",state=\"allocated\"} 1"));
  CHECK(has(text, "flex_start_nodes{nodeset=\"a\",state=\"down\"} 0"));
  CHECK(has(text, "flex_start_requests{nodeset=\"a\",state=\"ACCEPTED\"} 1"));
  CHECK(has(text, "flex_start_vms{nodeset=\"a\",state=\"up\"} 1"));
  CHECK(has(text, "flex_start_jobs{nodeset=\"a\",state=\"waiting\"} 1"));
  CHECK(has(text, "flex_start_jobs{nodeset=\"a\",state=\"running\"} 1"));
  CHECK(has(text, "flex_start_jobs_past_lease{nodeset=\"a\"} 1"));
  CHECK(has(text, "flex_start_lease_seconds_left_min{nodeset=\"a\"} 1800"));
  CHECK(has(text, "flex_start_leases_ending_soon{nodeset=\"a\"} 1"));
  CHECK(has(text, "flex_start_request_wait_seconds_max{nodeset=\"a\"} 75"));
  CHECK(has(text, "flex_start_nodeset_stopped{nodeset=\"a\"} 1"));
  CHECK(has(text, "flex_start_nodeset_paused{nodeset=\"a\"} 0"));
  CHECK(has(text, "flex_start_leaked_resources{kind=\"vm\"} 1"));
  CHECK(has(text, "flex_start_leaked_resources{kind=\"group\"} 0"));
  CHECK(has(text, "flex_start_active_requests 1"));
  CHECK(has(text, "flex_start_active_requests_limit 100"));
  CHECK(has(text, "flex_start_requests_waiting_for_turn 2"));
}

TEST_CASE("metrics: without a look only the sweeper itself is told") {
  Meter meter;
  meter.status.is_blind = true;
  meter.status.state = "passive";
  const std::string text = meter.text();
  CHECK(has(text, "flex_start_sweeper_active 0"));
  CHECK_THAT(text, ContainsSubstring("flex_start_build_info{"));
  CHECK_THAT(text, !ContainsSubstring("nodeset="));
  CHECK_THAT(text, !ContainsSubstring("flex_start_leaked_resources"));
  CHECK_THAT(text, !ContainsSubstring("flex_start_groups"));
}

TEST_CASE("metrics: a nodeset that is gone is told no longer") {
  Meter meter;
  CHECK_THAT(meter.look(), ContainsSubstring("nodeset=\"a\""));
  meter.scene.settings = config({nodeset("b", nodes("b", 1))});
  const std::string text = meter.look();
  CHECK_THAT(text, !ContainsSubstring("flex_start_nodes{nodeset=\"a\""));
  CHECK_THAT(text, ContainsSubstring("flex_start_nodes{nodeset=\"b\""));
}

TEST_CASE("metrics: what has not happened yet is 0 for each nodeset") {
  Meter meter;
  const std::string text = meter.look();
  CHECK(has(text, "flex_start_requests_created_total{nodeset=\"a\"} 0"));
  CHECK(has(text, "flex_start_queue_wait_seconds_count{nodeset=\"a\"} 0"));
  CHECK(has(text, "flex_start_queue_wait_seconds_bucket{nodeset=\"a\",le=\"3600\"} 0"));
  CHECK(has(text, "flex_start_resume_to_up_seconds_count{nodeset=\"a\"} 0"));
  CHECK(has(text, "flex_start_rounds_total{result=\"failed\"} 0"));
}

TEST_CASE("metrics: a request's life is counted once, and what was over before us is not") {
  Meter meter;
  meter.scene.asked(5, "a-5", RequestState::Succeeded);
  meter.scene.asked(6, "a-6", RequestState::Failed);
  meter.look();
  meter.scene.asked(7, "a-0");
  CHECK(has(meter.look(), "flex_start_requests_created_total{nodeset=\"a\"} 1"));
  auto& requests = meter.scene.owned().requests;
  requests.back().last_attempt = ProviderError{
      .code = "ZONE_RESOURCE_POOL_EXHAUSTED", .message = "none", .estimated_availability = {}};
  const std::string attempt =
      "flex_start_request_attempts_total{code=\"ZONE_RESOURCE_POOL_EXHAUSTED\",kind=\"no_"
      "capacity\","
      "nodeset=\"a\"} 1";
  CHECK(has(meter.look(), attempt));
  CHECK(has(meter.look(), attempt));
  requests.back().state = RequestState::Succeeded;
  meter.look();
  const std::string text = meter.look();
  CHECK(has(text, "flex_start_queue_wait_seconds_count{nodeset=\"a\"} 1"));
  CHECK(has(text, "flex_start_queue_wait_seconds_sum{nodeset=\"a\"} 120"));
  CHECK_THAT(text, !ContainsSubstring("flex_start_request_failures_total{"));
}

TEST_CASE("metrics: failures by class, and no end of labels") {
  Meter meter;
  meter.look();
  for (int i = 0; i < 60; ++i) {
    meter.scene.asked(static_cast<JobId>(100 + i), "a-0", RequestState::Failed).error =
        ProviderError{
            .code = "CODE_" + std::to_string(i), .message = "m", .estimated_availability = {}};
  }
  meter.scene.asked(7, "a-0", RequestState::Failed).error =
      ProviderError{.code = "Odd \"code\"\n", .message = "m", .estimated_availability = {}};
  const std::string text = meter.look();
  CHECK_THAT(text, ContainsSubstring("code=\"CODE_0\""));
  CHECK_THAT(text, ContainsSubstring("flex_start_request_failures_total{code=\"other\""));
  CHECK_THAT(text, !ContainsSubstring("Odd"));
}

TEST_CASE("metrics: from slurmctld's wish to the node that is up") {
  Meter meter;
  meter.scene.state("a-0", kComing);
  meter.look();  // since when, nobody knows
  Event asked = event("flex-resume", "asked");
  asked.nodes = "a-[1-2]";
  asked.when = meter.scene.shot.now + Seconds{5};
  meter.metrics.note_event(asked);
  meter.scene.state("a-[1-3]", kComingForJob);
  meter.look();
  meter.scene.vms("a-[0-3]");
  meter.scene.state("a-[0-1]", kIdle);
  meter.scene.state("a-3", kBusy);
  meter.scene.state("a-2", kOff);
  const std::string text = meter.look(Seconds{100});
  CHECK(has(text, "flex_start_resume_to_up_seconds_count{nodeset=\"a\"} 2"));
  CHECK(has(text, "flex_start_resume_to_up_seconds_sum{nodeset=\"a\"} 210"));
}

TEST_CASE("metrics: a node that is asked for again has waited since the first time") {
  Meter meter;
  meter.scene.state("a-0", kComing);
  meter.look();  // since when, nobody knows
  Event asked = event("flex-resume", "asked");
  asked.nodes = "a-1";
  asked.when = meter.scene.shot.now;
  meter.metrics.note_event(asked);
  meter.scene.state("a-1", kComingForJob);
  meter.look(Seconds{3600});
  asked.nodes = "a-[0-1]";
  asked.when = meter.scene.shot.now;
  meter.metrics.note_event(asked);
  meter.scene.vms("a-[0-1]");
  meter.scene.state("a-[0-1]", kIdle);
  const std::string text = meter.look(Seconds{100});
  CHECK(has(text, "flex_start_resume_to_up_seconds_count{nodeset=\"a\"} 1"));
  CHECK(has(text, "flex_start_resume_to_up_seconds_sum{nodeset=\"a\"} 3700"));
}

TEST_CASE("metrics: calls of all programs, actions and events") {
  Meter meter;
  meter.metrics.note_call({.method = "a.list", .status = 200, .took = Milliseconds{300}});
  meter.metrics.note_call(
      {.method = "a.list", .status = 200, .took = Milliseconds{1}, .is_retry = true});
  Event calls = event("flex-resume", "calls");
  calls.more = {{"a.list 200", "3"},
                {"b.insert 409", "1"},
                {"j7-9f\"} 200", "1"},
                {"retries", "2"},
                {"ms", "9"}};
  meter.metrics.note_event(calls);
  Event action = event("flex-sweeper", "delete_instances");
  action.rule = "orphan_instance";
  action.more = {{"result", "failed"}};
  meter.metrics.note_action(action);
  meter.metrics.note_action(event("flex-sweeper", "given_back"));
  meter.metrics.note_event(action);  // it is in the history, too
  meter.metrics.note_event(event("flex-suspend", "suspend"));
  meter.metrics.note_event(event("somebody", "something"));
  meter.metrics.note_round("complete", Milliseconds{1200});
  const std::string text = meter.text();
  const std::string start = "flex_start_api_calls_total{method=\"";
  CHECK(has(text, start + "a.list\",program=\"flex-sweeper\",status=\"200\"} 2"));
  CHECK(has(text, start + "a.list\",program=\"flex-resume\",status=\"200\"} 3"));
  CHECK(has(text, start + "b.insert\",program=\"flex-resume\",status=\"409\"} 1"));
  CHECK(has(text, start + "other\",program=\"flex-resume\",status=\"200\"} 1"));
  CHECK(has(text, "flex_start_api_retries_total{program=\"flex-resume\"} 2"));
  CHECK(has(text, "flex_start_api_retries_total{program=\"flex-sweeper\"} 1"));
  CHECK(has(text, "flex_start_api_call_duration_seconds_count{method=\"a.list\"} 2"));
  CHECK(has(text,
            "flex_start_actions_total{result=\"failed\",rule=\"orphan_instance\","
            "what=\"delete_instances\"} 1"));
  CHECK(has(text, "flex_start_events_total{program=\"flex-suspend\",what=\"suspend\"} 1"));
  CHECK(has(text, "flex_start_events_total{program=\"other\",what=\"other\"} 1"));
  CHECK(has(text, "flex_start_rounds_total{result=\"complete\"} 1"));
  CHECK(has(text, "flex_start_round_duration_seconds_count 1"));
}
