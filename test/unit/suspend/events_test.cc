// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/events.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

TEST_CASE("events: what was cancelled, deleted, and what was not", "[suspend]") {
  Event like;
  like.program = "flex-suspend";
  SuspendOutcome outcome;
  outcome.cancelled.push_back(
      {.group = {"hpc-a"}, .request = {"j7-x"}, .nodes = nodes("a", 2), .job = 7});
  outcome.deleted.push_back({.group = {"hpc-a"}, .instances = {running({"a-3"})}});
  outcome.failed.push_back(
      {.group = {"hpc-b"}, .nodes = {{"b-0"}}, .error = {ErrorKind::Denied, "no", ""}});
  const auto events = events_of(like, outcome);
  REQUIRE(events.size() == 3);
  CHECK(events[0].what == "cancel_request");
  CHECK(events[0].request == "j7-x");
  CHECK(events[0].job == 7);
  CHECK(events[0].nodes == "a-[0-1]");
  CHECK(events[0].more.at("result") == "ok");
  CHECK(events[1].what == "delete_instances");
  CHECK(events[1].nodes == "a-3");
  CHECK(events[2].more.at("result") == "failed");
  CHECK(events[2].more.at("error") == "no");
}

TEST_CASE("events: who took the nodes away is in the word", "[suspend]") {
  CHECK(suspend_event({}, nodes("a", 2), false).what == "suspend");
  CHECK(suspend_event({}, nodes("a", 2), true).what == "resume_failed");
  const Event back = put_back_event({}, nodes("a", 2), "no VM within ResumeTimeout");
  CHECK(back.what == "given_back");
  CHECK(back.n == 2);
}
