// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/kept_groups.h"

#include <algorithm>
#include <unordered_set>
#include <variant>

namespace flex {

namespace {

struct AddGroups {
  std::set<MigName>& names;

  void operator()(const CancelRequest& action) { names.insert(action.group); }

  void operator()(const DeleteRequest& action) { names.insert(action.group); }

  void operator()(const DeleteInstances& action) { names.insert(action.group); }

  void operator()(const DeleteGroup& action) { names.insert(action.group); }

  void operator()(const AskForNodes& action) {
    for (const auto& group : action.plan.groups) names.insert(group.spec.name);
  }

  template <class Other>
  void operator()(const Other&) {}
};

bool is_only_told(const Action& action) {
  return std::holds_alternative<NoteLease>(action.what) ||
         std::holds_alternative<NoteDrain>(action.what) ||
         std::holds_alternative<TellJob>(action.what) ||
         std::holds_alternative<WarnJob>(action.what) ||
         std::holds_alternative<SetReservation>(action.what) ||
         std::holds_alternative<DeleteReservation>(action.what) ||
         std::holds_alternative<DeletePolicy>(action.what);
}

bool names_any(const SweptGroup& group, const std::unordered_set<NodeName>& nodes) {
  const auto is_one = [&](const NodeName& name) { return nodes.contains(name); };
  return std::any_of(group.instances.begin(),
                     group.instances.end(),
                     [&](const Instance& entry) { return is_one(entry.name); }) ||
         std::any_of(
             group.requests.begin(), group.requests.end(), [&](const ResizeRequest& request) {
               return request.is_active() &&
                      std::any_of(request.nodes.begin(), request.nodes.end(), is_one);
             });
}

}  // namespace

std::set<MigName> written_groups(const std::vector<Action>& actions) {
  std::set<MigName> names;
  for (const Action& action : actions) std::visit(AddGroups{names}, action.what);
  return names;
}

std::set<MigName> kept_groups_of(const Config& config,
                                 const Snapshot& shot,
                                 const std::vector<Action>& actions) {
  const bool is_any_kept = std::any_of(
      shot.groups.begin(), shot.groups.end(), [](const auto& group) { return group.is_kept; });
  if (!is_any_kept) return {};
  const std::set<MigName> written = written_groups(actions);
  std::unordered_set<NodeName> nodes;
  for (const Action& action : actions) {
    if (is_only_told(action)) continue;
    for (const NodeName& node : nodes_of(action)) {
      if (config.find(node) != nullptr) nodes.insert(node);
    }
  }
  std::set<MigName> names;
  for (const SweptGroup& group : shot.groups) {
    if (!group.is_kept) continue;
    if (written.contains(group.group.name) || (!nodes.empty() && names_any(group, nodes)))
      names.insert(group.group.name);
  }
  return names;
}

}  // namespace flex
