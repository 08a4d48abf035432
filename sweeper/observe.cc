// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/observe.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/fleet/view.h"
#include "lib/slurm/node_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace flex {

namespace {

void tell(const Progress& progress, const std::string& doing) {
  if (progress) progress(doing);
}

/// What only some nodesets need. It is also looked for when there was some the last time, and in
/// the first round: the config may have changed since it was made.
struct Extras {
  bool has_loose = false;
  bool has_policies = false;
  /// Not only to find what an earlier config may have left: for that, a role that does not allow it
  /// is no obstacle.
  bool needs_loose = false;
  bool needs_policies = false;
  std::vector<std::string> bulk_nodesets{};
};

Extras extras_of(const Config& config, const Snapshot& last) {
  const auto& sets = config.nodesets;
  const bool is_first = last.nodes.items.empty();
  const auto is_loose = [](const SweptGroup& group) {
    return group.group.kind == GroupKind::Loose;
  };
  std::vector<std::string> bulk_nodesets;
  for (const NodesetConfig& set : sets) {
    if (may_use_bulk(set)) bulk_nodesets.push_back(set.name);
  }
  const auto has_placement = [](const NodesetConfig& set) { return set.placement.is_wanted(); };
  const bool needs_loose =
      !bulk_nodesets.empty() || std::any_of(last.groups.begin(), last.groups.end(), is_loose);
  const bool needs_policies =
      std::any_of(sets.begin(), sets.end(), has_placement) || !last.policies.empty();
  return {.has_loose = is_first || needs_loose,
          .has_policies = is_first || needs_policies,
          .needs_loose = needs_loose,
          .needs_policies = needs_policies,
          .bulk_nodesets = std::move(bulk_nodesets)};
}

class CloudLook {
 public:
  CloudLook(Cloud& cloud, const std::string& cluster, Extras extras, const Progress& progress)
      : cloud_(cloud), cluster_(cluster), extras_(std::move(extras)), progress_(progress) {}

  Result<Done> run(Snapshot& shot) {
    tell(progress_, "the list of groups at Compute Engine");
    cloud_.fetch_groups(cluster_name_prefix(cluster_), [this](Result<std::vector<Group>> got) {
      if (!got) return fail(std::move(got).error().in("listing the groups"));
      for (Group& group : *got) add(std::move(group));
    });
    if (extras_.has_loose) look_at_loose();
    if (extras_.has_policies) look_at_policies();
    cloud_.run();
    for (const auto& [name, lists] : vanished_) {
      if (lists < 2)
        fail(Error{ErrorKind::Retry, fmt::format("group {} shows only one of its lists", name)});
    }
    if (error_) return *std::move(error_);
    std::vector<SweptGroup> groups;
    for (SweptGroup& group : groups_) {
      if (!vanished_.contains(group.group.name)) groups.push_back(std::move(group));
    }
    shot.groups = std::move(groups);
    add_loose(shot);
    shot.foreign_groups = std::move(foreign_);
    shot.policies = std::move(policies_);
    shot.is_bulk_under_way = is_bulk_under_way_;
    return Done{};
  }

 private:
  /// First the operations: one that ends in between has its VMs in the list that is taken after.
  void look_at_loose() {
    cloud_.fetch_bulk_operations([this](const Result<std::vector<Operation>>& got) {
      if (!got)
        return fail_extra(got.error(), "listing bulkInsert operations", extras_.needs_loose);
      is_bulk_under_way_ = !got->empty();
      cloud_.fetch_loose_instances(cluster_, [this](Result<std::vector<Instance>> vms) {
        if (!vms)
          return fail_extra(
              vms.error(), "listing the VMs that are in no group", extras_.needs_loose);
        loose_ = *std::move(vms);
      });
    });
  }

  void look_at_policies() {
    cloud_.fetch_policies(cluster_name_prefix(cluster_), [this](Result<std::vector<Policy>> got) {
      if (!got)
        return fail_extra(got.error(), "listing the workload policies", extras_.needs_policies);
      policies_ = *std::move(got);
      std::erase_if(policies_, [this](const Policy& policy) {
        const auto nodeset = owned_nodeset(policy.description, cluster_);
        return !nodeset || !policy.name.starts_with(group_name_prefix(cluster_, *nodeset));
      });
    });
  }

  /// A nodeset that may have such VMs has its group even if there are none: it was looked at.
  void add_loose(Snapshot& shot) {
    auto sorted = by_nodeset(std::move(loose_), cluster_);
    for (const std::string& nodeset : extras_.bulk_nodesets) sorted.try_emplace(nodeset);
    for (auto& [nodeset, vms] : sorted) {
      shot.groups.push_back({.group = loose_group(cluster_, nodeset),
                             .nodeset = nodeset,
                             .requests = {},
                             .instances = std::move(vms)});
    }
  }

  void add(Group found) {
    auto nodeset = owned_nodeset(found.description, cluster_);
    // Both must be right: the mark in the description, and the name that goes with it.
    const bool is_ours =
        nodeset && found.name.text.starts_with(group_name_prefix(cluster_, *nodeset));
    if (!is_ours) {
      foreign_.push_back(std::move(found));
      return;
    }
    SweptGroup& group = groups_.emplace_back();
    group.group = std::move(found);
    group.nodeset = std::move(*nodeset);
    const MigName name = group.group.name;
    cloud_.fetch_requests(name, [this, &group, name](Result<std::vector<ResizeRequest>> got) {
      if (!got) return fail(name, "listing its requests", std::move(got).error());
      group.requests = std::move(*got);
      fill_nodes(group.requests);
      count_list();
    });
    cloud_.fetch_instances(name, [this, &group, name](Result<std::vector<Instance>> got) {
      if (!got) return fail(name, "listing its VMs", std::move(got).error());
      group.instances = std::move(*got);
      count_list();
    });
  }

  /// Each group has two lists.
  void count_list() {
    if (++lists_ % 2 == 0)
      tell(progress_,
           fmt::format("groups at Compute Engine: {} of {}", lists_ / 2, groups_.size()));
  }

  /// A group that is gone since it was listed is simply not there, if both of its lists say so.
  void fail(const MigName& group, std::string_view doing, Error error) {
    if (error.kind == ErrorKind::NotFound) {
      ++vanished_[group];
      return;
    }
    fail(std::move(error).in(fmt::format("group {}: {}", group, doing)));
  }

  void fail_extra(const Error& error, std::string_view doing, bool is_needed) {
    if (!is_needed && error.kind == ErrorKind::Denied) return;
    fail(error.in(std::string(doing)));
  }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  Cloud& cloud_;
  const std::string& cluster_;
  Extras extras_;
  const Progress& progress_;
  std::size_t lists_ = 0;  ///< that have come
  std::vector<Instance> loose_{};
  std::vector<Policy> policies_{};
  bool is_bulk_under_way_ = false;
  std::deque<SweptGroup> groups_{};  ///< stays where it is while answers come
  std::vector<Group> foreign_{};
  std::map<MigName, int> vanished_{};  ///< how many of the two lists were not found
  std::optional<Error> error_{};
};

/// Old releases do not count it as a change when power saving takes a node down (22.05; not so in
/// 24.11): there, unless all is dark, all nodes are asked for.
bool may_change_unseen(const Snapshot& shot) {
  constexpr std::string_view kFirstGood = "24.05";
  if (std::string_view(shot.settings.version) >= kFirstGood) return false;
  return std::any_of(shot.nodes.items.begin(), shot.nodes.items.end(), [](const Node& node) {
    const bool is_dark = is_powered_down(node) && !is_powering_down(node) &&
                         !is_power_up_requested(node) && !is_powering_up(node);
    return is_cloud(node) && !is_dark;
  });
}

}  // namespace

Result<Done> observe_slurm(Scheduler& scheduler, Snapshot& shot, const Progress& progress) {
  if (may_change_unseen(shot)) shot.nodes.as_of = {};
  tell(progress, "nodes at slurmctld");
  if (auto done = scheduler.refresh_nodes(shot.nodes); !done) return done.error();
  tell(progress, fmt::format("jobs at slurmctld ({} nodes)", shot.nodes.items.size()));
  if (auto done = scheduler.refresh_jobs(shot.jobs); !done) return done.error();
  tell(progress,
       fmt::format("reservations and partitions at slurmctld ({} jobs)", shot.jobs.items.size()));
  if (auto done = scheduler.refresh_reservations(shot.reservations); !done) return done.error();
  auto partitions = scheduler.refresh_partitions(shot.partitions);
  if (!partitions) return partitions.error();
  // A reconfigured slurmctld sends its partitions again.
  if (!*partitions && !shot.settings.version.empty()) return Done{};
  auto settings = scheduler.load_settings();
  if (!settings) return settings.error();
  shot.settings = std::move(*settings);
  return Done{};
}

Result<Done> observe(Cloud& cloud,
                     Scheduler& scheduler,
                     const Config& config,
                     TimePoint now,
                     Snapshot& shot,
                     const Progress& progress) {
  shot.now = now;
  CloudLook look{cloud, shot.cluster, extras_of(config, shot), progress};
  if (auto seen = look.run(shot); !seen) return seen.error().in("Compute Engine");
  if (auto seen = observe_slurm(scheduler, shot, progress); !seen)
    return seen.error().in("slurmctld");
  if (shot.nodes.items.empty() && !config.nodesets.empty())
    return Error{ErrorKind::Retry,
                 "slurmctld shows no nodes at all: Slurm before 23.02 needs PrivateData=cloud"};
  return Done{};
}

}  // namespace flex
