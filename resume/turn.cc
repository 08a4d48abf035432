// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/turn.h"

#include <algorithm>

namespace flex {

std::size_t count_active_requests(const FleetView& fleet) {
  std::size_t active = 0;
  for (const auto& [nodeset, view] : fleet) {
    for (const auto& [name, group] : view.groups) {
      // One that was not looked into has at least one.
      if (!group.is_read && group.group && group.group->actions.creating > 0) ++active;
      active += static_cast<std::size_t>(
          std::count_if(group.requests.begin(), group.requests.end(), [](const ResizeRequest& one) {
            return one.is_active();
          }));
    }
  }
  return active;
}

std::vector<NodeName> leave_beyond(ResumePlan& plan, std::size_t room) {
  std::vector<NodeName> left;
  for (GroupPlan& group : plan.groups) {
    if (group.spec.kind != GroupKind::Queued) continue;
    const std::size_t kept = std::min(room, group.requests.size());
    room -= kept;
    for (std::size_t i = kept; i < group.requests.size(); ++i) {
      const std::vector<NodeName>& nodes = group.requests[i].spec.nodes;
      left.insert(left.end(), nodes.begin(), nodes.end());
    }
    group.requests.resize(kept);
  }
  std::erase_if(plan.groups, [](const GroupPlan& group) { return group.requests.empty(); });
  return left;
}

std::vector<NodeName> leave_nodeset(ResumePlan& plan, const std::string& nodeset) {
  std::vector<NodeName> left;
  std::erase_if(plan.groups, [&](const GroupPlan& group) {
    if (group.nodeset != nodeset) return false;
    for (const PlannedRequest& request : group.requests)
      left.insert(left.end(), request.spec.nodes.begin(), request.spec.nodes.end());
    return true;
  });
  return left;
}

}  // namespace flex
