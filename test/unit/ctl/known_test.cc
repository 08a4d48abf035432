// SPDX-License-Identifier: GPL-2.0-or-later
// What is stopped and what is paused, from two files.
#include "ctl/known.h"

#include "test/support/catch.h"

using namespace flex;

TEST_CASE("known: a pause counts at once, and so does its end", "[ctl]") {
  Memory memory;
  memory.stopped["broken"].why = "3 boots in a row failed";
  memory.stopped["over"] = {.why = "paused by bob", .drained = {}, .is_paused = true};
  take_pauses({{"fresh", {.by = "ann", .reason = "a new image", .since = {}}}}, memory);
  CHECK(stopped_text(memory, "broken") == "is stopped: 3 boots in a row failed");
  CHECK(stopped_text(memory, "fresh") == "is paused by ann: a new image");
  CHECK(stopped_text(memory, "over").empty());
  CHECK(stopped_text(memory, "other").empty());
}
