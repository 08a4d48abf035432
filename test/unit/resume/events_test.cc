// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/events.h"

#include "resume/plan.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;
using namespace std::chrono_literals;

namespace {

Event like() {
  Event event;
  event.when = TimePoint{Seconds{1'800'000'000}};
  event.program = "flex-resume";
  return event;
}

PlannedRequest planned() {
  const Config settings = config({nodeset("a", nodes("a", 4))});
  Demand demand;
  demand.jobs.push_back({.job = job(12, nodes("a", 2), 4h), .nodes = nodes("a", 2)});
  FleetView fleet;
  fleet[0] = {};
  return plan_resume(settings, "hpc", demand, fleet).groups.at(0).requests.at(0);
}

}  // namespace

TEST_CASE("events: slurmctld's wish, job by job", "[resume]") {
  Demand demand;
  demand.jobs.push_back({.job = job(12, nodes("a", 2), 4h), .nodes = nodes("a", 2)});
  demand.jobless = {{"a-3"}};
  const auto events = asked_events(like(), demand);
  REQUIRE(events.size() == 2);
  CHECK(events[0].what == "asked");
  CHECK(events[0].job == 12);
  CHECK(events[0].nodes == "a-[0-1]");
  CHECK(events[1].job == 0);
  CHECK(events[1].nodes == "a-3");
  CHECK(events[1].program == "flex-resume");
}

TEST_CASE("events: a request tells its name, its life and how that was computed", "[resume]") {
  const PlannedRequest request = planned();
  const Event event =
      event_of(like(), {.request = request, .result = RequestResult::Requested, .error = {}});
  CHECK(event.what == "requested");
  CHECK(event.job == 12);
  CHECK(event.nodeset == "a");
  CHECK(event.group == "hpc-a");
  CHECK(event.request == request.spec.name.text);
  CHECK(event.nodes == "a-[0-1]");
  CHECK(event.n == 2);
  CHECK(event.more.at("run_s") == "15300");
  CHECK(event.more.at("how") == "TimeLimit 04:00:00 + run_duration_margin 00:15:00");
  CHECK(event.more.at("attempt") == "1");
  CHECK(event.more.at("mode") == "queued");
  CHECK(event.more.at("zones") == "us-central1-a,us-central1-b");
  CHECK(
      event_of(like(), {.request = request, .result = RequestResult::Existing, .error = {}}).what ==
      "requested_before");
}

TEST_CASE("events: a refusal says why, and what then", "[resume]") {
  const PlannedRequest request = planned();
  const auto refused = [&](ErrorKind kind, const std::string& what) {
    return event_of(
        like(),
        {.request = request, .result = RequestResult::Failed, .error = Error{kind, what, "CODE"}});
  };
  const Event denied = refused(ErrorKind::Denied, "no permission");
  CHECK(denied.what == "not_requested");
  CHECK(denied.why == "no permission");
  CHECK(denied.more.at("code") == "CODE");
  CHECK(denied.more.at("then") == "given back");
  CHECK(refused(ErrorKind::Retry, "503").more.at("then") == "asked again");
  CHECK(refused(ErrorKind::Quota, "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded").what ==
        "left_to_sweeper");
  Event ruled = like();
  ruled.why = "attempt 1 failed";
  const Event again = event_of(
      ruled, Refusal{.job = 3, .nodes = {{"a-0"}}, .error = {ErrorKind::Retry, "503", ""}});
  CHECK(again.why == "503");
  CHECK(again.more.at("asked_because") == "attempt 1 failed");
}

TEST_CASE("events: what is left to the sweeper is told to each job concerned", "[resume]") {
  Demand demand;
  demand.jobs.push_back({.job = job(12, nodes("a", 2), 4h), .nodes = nodes("a", 2)});
  demand.jobs.push_back({.job = job(13, nodes("a", 1, 2), 4h), .nodes = nodes("a", 1, 2)});
  const auto events = left_events(like(), demand, {{"a-2"}}, "5 wait");
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == "left_to_sweeper");
  CHECK(events[0].job == 13);
  CHECK(events[0].why == "5 wait");
}

TEST_CASE("events: given back is only what no other try would help", "[resume]") {
  const std::vector<Refusal> refusals{
      {.job = 1, .nodes = {{"a-0"}}, .error = {ErrorKind::Denied, "no", ""}},
      {.job = 2, .nodes = {{"a-1"}}, .error = {ErrorKind::Retry, "later", ""}}};
  const auto events = given_back_events(like(), refusals, {});
  REQUIRE(events.size() == 1);
  CHECK(events[0].what == "given_back");
  CHECK(events[0].job == 1);
  CHECK(events[0].why == "no");
}
