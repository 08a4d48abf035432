// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/plan.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace flex {

namespace {

using NodeSet = std::unordered_set<NodeName>;

/// Cancels the group's requests that nobody else waits for, and notes the ones that stay. Returns
/// the nodes of all of them.
NodeSet plan_requests(SuspendPlan& plan,
                      const MigName& name,
                      const GroupView& group,
                      const NodeSet& leaving) {
  NodeSet queued;
  for (const ResizeRequest& request : group.requests) {
    if (!request.is_active()) continue;
    std::vector<NodeName> mine;
    for (const NodeName& node : request.nodes) {
      if (leaving.contains(node)) mine.push_back(node);
    }
    if (mine.empty()) continue;
    queued.insert(mine.begin(), mine.end());
    if (mine.size() == request.nodes.size()) {
      plan.cancels.push_back({.group = name,
                              .request = request.name,
                              .nodes = std::move(mine),
                              .job = request_job(request)});
    } else {
      const std::size_t others = request.nodes.size() - mine.size();
      plan.kept.push_back(
          {.group = name, .request = request.name, .leaving = std::move(mine), .others = others});
    }
  }
  return queued;
}

/// Deletes the leaving nodes' VMs and entries of one group. An entry that a request has queued
/// cannot be deleted: cancelling does it. One that waits alone can.
NodeSet plan_instances(SuspendPlan& plan,
                       const MigName& name,
                       const GroupView& group,
                       const NodeSet& leaving,
                       const NodeSet& requested) {
  NodeSet seen;
  std::vector<Instance> doomed;
  for (const Instance& instance : group.instances) {
    if (!leaving.contains(instance.name) || instance.action == InstanceAction::Deleting) continue;
    if (instance.is_queued() && group.group->kind == GroupKind::Queued) {
      if (requested.contains(instance.name)) continue;
      plan.unclear.push_back(instance.name);
    } else {
      doomed.push_back(instance);
    }
    seen.insert(instance.name);
  }
  for (std::size_t at = 0; at < doomed.size(); at += kMaxRequestSize) {
    const auto begin = doomed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        doomed.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMaxRequestSize, doomed.size()));
    plan.deletions.push_back({.group = name, .instances = {begin, end}});
  }
  return seen;
}

/// All that an entry or an active request of the nodeset names.
NodeSet named_in(const NodesetView& view) {
  NodeSet named;
  for (const auto& [name, group] : view.groups) {
    for (const Instance& instance : group.instances) named.insert(instance.name);
    for (const ResizeRequest& request : group.requests) {
      if (request.is_active()) named.insert(request.nodes.begin(), request.nodes.end());
    }
  }
  return named;
}

}  // namespace

std::set<std::string> nodesets_without_trace(const Config& config,
                                             std::span<const NodeName> nodes,
                                             const FleetView& fleet) {
  std::map<std::size_t, NodeSet> named;
  for (const auto& [index, view] : fleet) named[index] = named_in(view);
  std::set<std::string> found;
  for (const NodeName& node : nodes) {
    const Config::Place* const place = config.find(node);
    if (place == nullptr || !named.contains(place->nodeset)) continue;
    if (!named.at(place->nodeset).contains(node))
      found.insert(config.nodesets[place->nodeset].name);
  }
  return found;
}

SuspendPlan plan_suspend(const Config& config,
                         const std::string& cluster,
                         std::span<const NodeName> nodes,
                         const FleetView& fleet) {
  SuspendPlan plan;
  std::map<std::size_t, std::vector<NodeName>> by_nodeset;
  NodeSet known;
  for (const NodeName& node : nodes) {
    const Config::Place* place = config.find(node);
    if (place == nullptr) {
      plan.foreign.push_back(node);
    } else if (known.insert(node).second) {
      by_nodeset[place->nodeset].push_back(node);
    }
  }
  for (auto& [index, members] : by_nodeset) {
    const auto view = fleet.find(index);
    if (view == fleet.end() || view->second.error) {
      Error error = view == fleet.end()
                        ? Error{ErrorKind::Internal, "the nodeset was not looked at"}
                        : *view->second.error;
      plan.unseen.push_back({.nodes = std::move(members), .error = std::move(error)});
      continue;
    }
    const NodeSet leaving(members.begin(), members.end());
    NodeSet busy;
    for (const auto& [name, group] : view->second.groups) {
      if (!group.group || !is_owned(group.group->description, cluster, config.nodesets[index].name))
        continue;
      NodeSet requested = plan_requests(plan, name, group, leaving);
      busy.merge(plan_instances(plan, name, group, leaving, requested));
      busy.merge(requested);
    }
    for (NodeName& node : members) {
      if (!busy.contains(node)) plan.gone.push_back(std::move(node));
    }
  }
  return plan;
}

}  // namespace flex
