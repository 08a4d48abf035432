// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/calls.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("calls: what was counted comes out of the history as it went in") {
  CallTally tally;
  CHECK(tally.empty());
  tally.add({.method = "a.list", .status = 200, .took = std::chrono::milliseconds{30}});
  tally.add({.method = "a.list", .status = 200, .took = std::chrono::milliseconds{12}});
  tally.add({.method = "a.list", .status = 0, .is_retry = true});
  tally.add({.method = "b.insert", .status = 409});
  const TimePoint when{Seconds{1'800'000'000}};
  const auto event = parse_event(to_line(tally.event("flex-resume", when)));
  REQUIRE(event);
  CHECK(event->program == "flex-resume");
  CHECK(event->what == "calls");
  CHECK(event->when == when);
  CHECK(event->more.at("ms") == "42");
  const CallCounts counts = calls_in(*event);
  CHECK(counts.retries == 1);
  REQUIRE(counts.calls.size() == 3);
  CHECK(counts.calls[0].method == "a.list");
  CHECK(counts.calls[0].status == 0);
  CHECK(counts.calls[0].count == 1);
  CHECK(counts.calls[1].status == 200);
  CHECK(counts.calls[1].count == 2);
  CHECK(counts.calls[2].method == "b.insert");
}

TEST_CASE("calls: what makes no sense is left out") {
  Event event;
  event.more = {{"a.list 200", "x"},
                {"a.list", "1"},
                {"a.list -1", "1"},
                {"a.list 2000", "1"},
                {"a.list 2 0", "1"},
                {"retries", "-2"}};
  CHECK(calls_in(event).calls.empty());
  CHECK(calls_in(event).retries == 0);
}
