// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/memory.h"

#include "test/support/catch.h"

using namespace flex;

namespace {

TimePoint at(int seconds) {
  return TimePoint{Seconds{1000 + seconds}};
}

}  // namespace

TEST_CASE("a sighting counts rounds in a row and remembers the first") {
  Memory memory;
  CHECK_FALSE(memory.see("rule", "x", at(0)).is_twice());
  CHECK_FALSE(memory.see("rule", "x", at(0)).is_twice());
  ++memory.round;
  CHECK(memory.see("rule", "x", at(15)).is_twice());
  ++memory.round;
  CHECK(memory.see("rule", "x", at(30)).age() == Seconds{30});
  CHECK(memory.find("rule", "y") == nullptr);
}

TEST_CASE("what is not seen in a round is forgotten") {
  Memory memory;
  memory.see("rule", "x", at(0));
  ++memory.round;
  memory.see("rule", "y", at(0));
  memory.forget_unseen();
  CHECK(memory.find("rule", "x") == nullptr);
  CHECK(memory.find("rule", "y") != nullptr);
}

TEST_CASE("a long gap, and a clock that was set back, start anew") {
  Memory memory;
  memory.see("rule", "x", at(0));
  ++memory.round;
  CHECK_FALSE(memory.see("rule", "x", at(601)).is_twice());
  ++memory.round;
  CHECK_FALSE(memory.see("rule", "x", at(500)).is_twice());
}

TEST_CASE("memory is written down and read again") {
  Memory memory;
  memory.last_round = at(3);
  memory.see("rule", "x y/z", at(0));
  ++memory.round;
  memory.see("rule", "x y/z", at(1));
  memory.retries[{"a-7"}] = {
      .attempts = 2, .refusals = 1, .next = at(9), .why = "no \"capacity\"\n"};
  memory.raised[{"a-1"}] = {.attempts = 1, .refusals = 0, .next = at(8), .why = ""};
  memory.drains[{"a-2"}] = "fan";
  memory.armed[{"a-0"}] = at(4);
  memory.lease_ends[{"a-0"}] = {.ends = at(5), .vm = "123"};
  memory.eligibility[7] = {.restart_count = 2,
                           .overlooked = {"x"},
                           .given_back = {"y", "z"},
                           .judged = "600 accounting"};
  memory.boots[{"a-5"}] = {.jobs = {7, 8}, .vm = "125"};
  memory.boot_failures["a"] = {
      .count = 2, .last = at(7), .refused = {{"a-5"}}, .counted = {"123", "125"}};
  memory.stopped["b"] = {.why = "x", .drained = {{"b-0"}, {"b-1"}}, .is_clearing = true};
  memory.notes[7] = at(6);
  memory.warned[7] = {.ends = at(60), .restart_count = 2};
  memory.worked[{"a-3"}] = "123";
  memory.repairs[{"a-4"}] = {.times = {at(1), at(2)},
                             .reason = "Xid \"79\"",
                             .vm = "124",
                             .is_under_way = true,
                             .has_given_up = false};
  const auto read = parse_memory(to_text(memory));
  REQUIRE(read);
  CHECK(to_text(*read) == to_text(memory));
  CHECK(read->find("rule", "x y/z")->count == 2);
  CHECK(read->stopped.at("b").drained.size() == 2);
  CHECK(read->warned.at(7).ends == at(60));
  CHECK(read->repairs.at({"a-4"}).times.size() == 2);
}

TEST_CASE("anything else is refused, not believed") {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"version":2})", R"({"version":1,"sightings":[]})", "nul"}) {
    CHECK_FALSE(parse_memory(text));
  }
}

TEST_CASE("memory: where on_stockout stands outlives a restart") {
  Memory memory;
  memory.stockouts["a job 7"] = {
      .step = 1, .since = at(5), .is_asked = true, .is_shut = true, .is_hopeless = true};
  const auto read = parse_memory(to_text(memory));
  REQUIRE(read);
  const StockoutState& state = read->stockouts.at("a job 7");
  CHECK(state.step == 1);
  CHECK(state.since == at(5));
  CHECK(state.is_asked);
  CHECK(state.is_shut);
  CHECK(state.is_hopeless);
}

TEST_CASE("memory: ways that are shut outlive a restart") {
  Memory memory;
  memory.shut["a job 7"] = {
      .restart_count = 2,
      .ways = {{{"hpc-a-za"}, {.failures = 3, .next = kNotThisWait, .why = "never"}}}};
  memory.heeded = {"hpc-a-za/j7-x 5"};
  const auto read = parse_memory(to_text(memory));
  REQUIRE(read);
  CHECK(read->heeded == memory.heeded);
  const ShutWays& shut = read->shut.at("a job 7");
  CHECK(shut.restart_count == 2);
  CHECK(shut.ways.at({"hpc-a-za"}).failures == 3);
  CHECK(shut.ways.at({"hpc-a-za"}).next == kNotThisWait);
  CHECK(shut.ways.at({"hpc-a-za"}).why == "never");
}
