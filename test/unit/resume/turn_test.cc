// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/turn.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

using namespace flex;
using namespace flex::test;

namespace {

ResumePlan plan_of(const std::vector<std::pair<std::string, int>>& groups) {
  ResumePlan plan;
  for (const auto& [name, count] : groups) {
    GroupPlan& group = plan.groups.emplace_back();
    group.spec.name = {name};
    for (int i = 0; i < count; ++i)
      group.requests.emplace_back().spec.nodes = {{name + "-" + std::to_string(i)}};
  }
  return plan;
}

}  // namespace

TEST_CASE("turn: what is beyond the room is left, with groups only for it", "[resume]") {
  ResumePlan plan = plan_of({{"a", 2}, {"b", 2}, {"c", 1}});
  CHECK(leave_beyond(plan, 3) == std::vector<NodeName>{{"b-1"}, {"c-0"}});
  REQUIRE(plan.groups.size() == 2);
  CHECK(plan.groups[1].requests.size() == 1);
  CHECK(leave_beyond(plan, 3).empty());
}

TEST_CASE("turn: VMs that come without a request need no room", "[resume]") {
  ResumePlan plan = plan_of({{"a", 2}, {"b", 1}});
  plan.groups[0].spec.kind = GroupKind::Individual;
  CHECK(leave_beyond(plan, 0) == std::vector<NodeName>{{"b-0"}});
  CHECK(plan.groups.size() == 1);
}

TEST_CASE("turn: only active requests count", "[resume]") {
  FleetView fleet;
  fleet[0].groups[{"a"}].requests = {request("r1", RequestState::Accepted, {}),
                                     request("r2", RequestState::Failed, {}),
                                     request("r3", RequestState::Creating, {})};
  fleet[1].groups[{"b"}].requests = {request("r4", RequestState::Accepted, {})};
  CHECK(count_active_requests(fleet) == 3);
}

TEST_CASE("turn: a nodeset that is paused is left out, the others stay", "[resume]") {
  ResumePlan plan = plan_of({{"a", 2}, {"b", 1}});
  plan.groups[0].nodeset = "a";
  plan.groups[1].nodeset = "b";
  CHECK(leave_nodeset(plan, "a") == std::vector<NodeName>{{"a-0"}, {"a-1"}});
  CHECK(plan.groups.size() == 1);
  CHECK(leave_nodeset(plan, "a").empty());
}
