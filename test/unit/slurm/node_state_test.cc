// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/node_state.h"

#include "test/support/catch.h"

#include <slurm/slurm.h>

using namespace flex;

namespace {

Node node_in(std::uint64_t state) {
  return {.name = {"n"}, .state = static_cast<std::uint32_t>(state)};
}

}  // namespace

TEST_CASE("node_state: each predicate sees its own bit and no other", "[slurm]") {
  using Predicate = bool (*)(const Node&);
  const auto [bit, predicate] = GENERATE(table<std::uint64_t, Predicate>({
      {NODE_STATE_POWERING_UP, is_powering_up},
      {NODE_STATE_POWERED_DOWN, is_powered_down},
      {NODE_STATE_POWERING_DOWN, is_powering_down},
      {NODE_STATE_DRAIN, is_draining},
      {NODE_STATE_NO_RESPOND, is_not_responding},
      {NODE_STATE_CLOUD, is_cloud},
      {NODE_STATE_COMPLETING, is_completing},
      {NODE_STATE_POWER_UP, is_power_up_requested},
      {NODE_STATE_POWER_DOWN, is_power_down_requested},
  }));
  CHECK(predicate(node_in(NODE_STATE_IDLE | bit)));
  CHECK_FALSE(predicate(node_in(0xffffffffULL & ~bit)));
}

TEST_CASE("node_state: the base state is a number, not a bit", "[slurm]") {
  CHECK(is_idle(node_in(NODE_STATE_IDLE | NODE_STATE_CLOUD)));
  CHECK_FALSE(is_idle(node_in(NODE_STATE_ALLOCATED)));  // 3 contains the bit of 2
  CHECK_FALSE(is_idle(node_in(NODE_STATE_FUTURE)));
  CHECK(is_down(node_in(NODE_STATE_DOWN | NODE_STATE_POWERED_DOWN)));
  CHECK_FALSE(is_down(node_in(NODE_STATE_ALLOCATED)));
  CHECK(is_allocated(node_in(NODE_STATE_ALLOCATED)));
  CHECK(is_allocated(node_in(NODE_STATE_MIXED)));
  CHECK_FALSE(is_allocated(node_in(NODE_STATE_DOWN)));
}

TEST_CASE("node_state: the bits are those that the design relies on", "[slurm]") {
  CHECK(NODE_STATE_POWERED_DOWN == 1U << 12U);
  CHECK(NODE_STATE_POWERING_UP == 1U << 14U);
  CHECK(NODE_STATE_POWERING_DOWN == 1U << 18U);
}

TEST_CASE("is_up: a machine that Slurm believes in", "[slurm]") {
  CHECK(is_up(node_in(NODE_STATE_IDLE | NODE_STATE_CLOUD)));
  CHECK(is_up(node_in(NODE_STATE_MIXED | NODE_STATE_DRAIN)));
  CHECK(is_up(node_in(NODE_STATE_DOWN | NODE_STATE_NO_RESPOND)));
  // Asked for, not begun.
  CHECK(is_up(node_in(NODE_STATE_ALLOCATED | NODE_STATE_POWER_DOWN)));
  CHECK_FALSE(is_up(node_in(NODE_STATE_IDLE | NODE_STATE_POWERED_DOWN)));
  CHECK_FALSE(is_up(node_in(NODE_STATE_IDLE | NODE_STATE_POWERING_DOWN)));
  CHECK_FALSE(is_up(node_in(NODE_STATE_ALLOCATED | NODE_STATE_POWERING_UP)));
  CHECK_FALSE(is_up(node_in(NODE_STATE_FUTURE)));
  CHECK_FALSE(is_up(node_in(NODE_STATE_UNKNOWN)));
}

TEST_CASE("state_text: names the base state and the flags", "[slurm]") {
  CHECK(state_text(node_in(NODE_STATE_IDLE)) == "IDLE");
  CHECK(state_text(node_in(NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERING_UP)) ==
        "IDLE+CLOUD+POWERING_UP");
  CHECK(state_text(node_in(NODE_STATE_DOWN | NODE_STATE_NO_RESPOND)) == "DOWN+NOT_RESPONDING");
  CHECK(state_text(node_in(15)) == "?");
}
