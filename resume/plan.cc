// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/plan.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace flex {

namespace {

/// What the nodeset's groups hold, by node.
struct Holdings {
  std::unordered_set<NodeName> requested{};  ///< in an active request
  std::unordered_set<NodeName> served{};     ///< in a request that has succeeded

  struct Entry {
    const Instance* instance;
    const MigName* group;
  };

  std::unordered_map<NodeName, Entry> entries{};
};

Holdings holdings_of(const NodesetView& view,
                     const std::string& cluster,
                     const std::string& nodeset) {
  Holdings holdings;
  for (const auto& [name, group] : view.groups) {
    if (!group.group || !is_owned(group.group->description, cluster, nodeset)) continue;
    for (const ResizeRequest& request : group.requests) {
      auto& nodes = request.state == RequestState::Succeeded ? holdings.served : holdings.requested;
      if (request.is_active() || request.state == RequestState::Succeeded)
        nodes.insert(request.nodes.begin(), request.nodes.end());
    }
    for (const Instance& instance : group.instances) {
      const auto [found, is_new] =
          holdings.entries.try_emplace(instance.name, Holdings::Entry{&instance, &name});
      // A dead entry in one group must not hide a VM in another.
      if (!is_new && found->second.instance->is_dead()) found->second = {&instance, &name};
    }
  }
  return holdings;
}

template <class IsTaken>
void raise_attempt(RequestKey& key, const IsTaken& is_taken) {
  while (is_taken(request_name(key))) ++key.attempt;
}

class Planner {
 public:
  Planner(const Config& config,
          const std::string& cluster,
          const FleetView& fleet,
          std::uint32_t first_attempt)
      : config_(config), cluster_(cluster), fleet_(fleet), first_attempt_(first_attempt) {
    for (const auto& [index, view] : fleet) {
      holdings_[index] = holdings_of(view, cluster, config.nodesets[index].name);
    }
  }

  void add_job(const Demand::JobNodes& wanted) {
    std::map<std::size_t, std::vector<NodeName>> by_nodeset;
    for (const NodeName& node : wanted.nodes)
      by_nodeset[config_.find(node)->nodeset].push_back(node);
    for (auto& [nodeset, nodes] : by_nodeset) add(nodeset, &wanted.job, std::move(nodes));
  }

  /// Nobody waits for several jobless nodes at once: one request each, so that one that waits does
  /// not hold up the others.
  void add_jobless(const NodeName& node) { add(config_.find(node)->nodeset, nullptr, {node}); }

  ResumePlan finish() {
    for (auto& [key, group] : groups_) plan_.groups.push_back(std::move(group));
    return std::move(plan_);
  }

 private:
  void add(std::size_t index, const Job* job, std::vector<NodeName> nodes) {
    const NodesetConfig& nodeset = config_.nodesets[index];
    const JobId id = job == nullptr ? 0 : job->id;
    const auto view = fleet_.find(index);
    if (view == fleet_.end() || view->second.error) {
      Error error = view == fleet_.end()
                        ? Error{ErrorKind::Internal, "the nodeset was not looked at"}
                        : *view->second.error;
      plan_.refusals.push_back({.job = id, .nodes = std::move(nodes), .error = std::move(error)});
      return;
    }
    const std::vector<NodeName> missing = without_backed(holdings_[index], std::move(nodes));
    if (missing.empty()) return;
    const RunDuration duration =
        run_duration(nodeset, job == nullptr ? std::nullopt : job->time_limit);
    if (duration.is_capped && job != nullptr && job->time_limit) {
      plan_.capped.push_back({.job = id, .time_limit = *job->time_limit, .run = duration.run});
    }
    std::map<MigName, std::vector<NodeName>> by_group;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      const bool own_group = nodeset.mig_scope == MigScope::Job && id != 0;
      const MigName name = own_group
                               ? job_group_name(cluster_, nodeset.name, id, i / kMaxGroupSize)
                               : group_of_node(cluster_, nodeset, config_.find(missing[i])->index);
      by_group[name].push_back(missing[i]);
    }
    for (auto& [name, members] : by_group) {
      add_requests(index, name, {.job = job, .run = duration.run, .nodes = std::move(members)});
    }
  }

  struct Ask {
    const Job* job;
    Seconds run;
    std::vector<NodeName> nodes;
  };

  void add_requests(std::size_t index, const MigName& name, Ask ask) {
    const NodesetConfig& nodeset = config_.nodesets[index];
    const NodesetView& view = fleet_.at(index);
    const auto seen = view.groups.find(name);
    const GroupView* group_view = seen == view.groups.end() ? nullptr : &seen->second;
    const JobId id = ask.job == nullptr ? 0 : ask.job->id;
    const bool exists = group_view != nullptr && group_view->group.has_value();
    if (exists && !is_owned(group_view->group->description, cluster_, nodeset.name)) {
      Error error{ErrorKind::Invalid,
                  fmt::format("group {} exists but is not ours (its description is not '{}'): "
                              "rename the nodeset or "
                              "delete the group",
                              name,
                              ownership_mark(cluster_, nodeset.name)),
                  "FOREIGN_GROUP"};
      plan_.refusals.push_back(
          {.job = id, .nodes = std::move(ask.nodes), .error = std::move(error)});
      return;
    }
    GroupPlan& group = group_plan(index, name, exists, id);
    for (std::size_t at = 0; at < ask.nodes.size(); at += kMaxRequestSize) {
      const auto begin = ask.nodes.begin() + static_cast<std::ptrdiff_t>(at);
      const auto end = ask.nodes.begin() + static_cast<std::ptrdiff_t>(
                                               std::min(at + kMaxRequestSize, ask.nodes.size()));
      PlannedRequest request;
      request.job = id;
      request.key = free_key(name,
                             group_view,
                             {.cluster = cluster_,
                              .nodeset = nodeset.name,
                              .job = id,
                              .restart_count = ask.job == nullptr ? 0 : ask.job->restart_count,
                              .attempt = first_attempt_,
                              .nodes = {begin, end}});
      request.spec = {
          .name = request_name(request.key),
          .group = name,
          .description = request_description(id, request.key.nodes, request.key.attempt),
          .nodes = request.key.nodes,
          .run_duration = ask.run};
      note_names(request, holdings_[index], name);
      group.requests.push_back(std::move(request));
    }
  }

  /// What must happen to the request's names before they can be asked for.
  static void note_names(PlannedRequest& request, const Holdings& holdings, const MigName& group) {
    for (const NodeName& node : request.spec.nodes) {
      const auto entry = holdings.entries.find(node);
      if (entry == holdings.entries.end()) continue;
      const auto& [instance, holder] = entry->second;
      if (instance->is_dead()) {
        // In another group the entry is no obstacle: names are unique among VMs and within a group.
        if (*holder != group) continue;
        request.dead.push_back(*instance);
      }
      request.awaited[*holder].push_back(node);
    }
  }

  /// The names in a group are gathered once: a group may have as many requests as nodes, and each
  /// of them may be asked for again.
  RequestKey free_key(const MigName& group, const GroupView* view, RequestKey key) {
    if (view == nullptr) return key;
    const auto [found, is_new] = taken_.try_emplace(group);
    if (is_new) {
      for (const ResizeRequest& request : view->requests) found->second.insert(request.name);
    }
    const auto& names = found->second;
    raise_attempt(key, [&](const RequestName& name) { return names.contains(name); });
    return key;
  }

  GroupPlan& group_plan(std::size_t index, const MigName& name, bool exists, JobId job) {
    const auto [found, is_new] = groups_.try_emplace(name);
    GroupPlan& group = found->second;
    if (!is_new) return group;
    const NodesetConfig& nodeset = config_.nodesets[index];
    std::string description = ownership_mark(cluster_, nodeset.name);
    if (nodeset.mig_scope == MigScope::Job && job != 0) description += fmt::format(" job={}", job);
    group.spec = {.name = name,
                  .description = std::move(description),
                  .instance_template = nodeset.instance_template,
                  .zones = nodeset.zones};
    group.nodeset = nodeset.name;
    group.exists = exists;
    return group;
  }

  std::vector<NodeName> without_backed(const Holdings& holdings, std::vector<NodeName> nodes) {
    std::vector<NodeName> missing;
    for (NodeName& node : nodes) {
      const auto entry = holdings.entries.find(node);
      const bool is_requested = holdings.requested.contains(node);
      const bool is_served = holdings.served.contains(node);
      const bool is_backed = is_requested || (entry != holdings.entries.end() &&
                                              has_vm(*entry->second.instance, is_served));
      (is_backed ? plan_.left_alone : missing).push_back(std::move(node));
    }
    return missing;
  }

  /// A queued entry that no active request accounts for is what a cancelled or failed one leaves
  /// for a moment, unless its request has just been served.
  static bool has_vm(const Instance& instance, bool is_served) {
    if (instance.is_queued()) return is_served;
    return !instance.is_dead() && !instance.is_leaving();
  }

  const Config& config_;
  const std::string& cluster_;
  const FleetView& fleet_;
  std::uint32_t first_attempt_;
  std::map<std::size_t, Holdings> holdings_{};
  std::map<MigName, GroupPlan> groups_{};
  std::map<MigName, std::unordered_set<RequestName>> taken_{};
  ResumePlan plan_{};
};

}  // namespace

void next_free_attempt(RequestKey& key, const std::vector<ResizeRequest>& taken) {
  raise_attempt(key, [&](const RequestName& name) {
    return std::any_of(taken.begin(), taken.end(), [&](const ResizeRequest& request) {
      return request.name == name;
    });
  });
}

ResumePlan plan_resume(const Config& config,
                       const std::string& cluster,
                       const Demand& demand,
                       const FleetView& fleet,
                       std::uint32_t first_attempt) {
  Planner planner{config, cluster, fleet, first_attempt};
  for (const Demand::JobNodes& wanted : demand.jobs) planner.add_job(wanted);
  for (const NodeName& node : demand.jobless) planner.add_jobless(node);
  return planner.finish();
}

}  // namespace flex
