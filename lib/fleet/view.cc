// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/view.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// "Not there" is an answer; anything else makes the nodeset's view incomplete.
void note_failure(NodesetView& view, const MigName& group, std::string_view doing, Error error) {
  if (error.kind == ErrorKind::NotFound || view.error) return;
  view.error = std::move(error).in(fmt::format("{} of group {}", doing, group));
}

void look_into(Cloud& cloud, NodesetView& view, const MigName& name) {
  GroupView& group = view.groups[name];
  group.is_read = true;
  cloud.fetch_requests(name, [&view, &group, name](Result<std::vector<ResizeRequest>> got) {
    if (!got) return note_failure(view, name, "listing the requests", std::move(got).error());
    group.requests = std::move(*got);
    fill_nodes(group.requests);
  });
  cloud.fetch_instances(name, [&view, &group, name](Result<std::vector<Instance>> got) {
    if (!got) return note_failure(view, name, "listing the VMs", std::move(got).error());
    group.instances = std::move(*got);
  });
}

/// All names that the nodeset's own groups may have.
std::set<MigName> own_groups(const std::string& cluster, const NodesetConfig& nodeset) {
  std::set<MigName> names;
  for (std::size_t index = 0; index < nodeset.nodes.size(); index += group_capacity(nodeset))
    names.insert(group_of_node(cluster, nodeset, index));
  return names;
}

/// All zones that the nodeset's VMs may be in; none: any of the region.
std::set<std::string> zones_of(const NodesetConfig& nodeset) {
  std::set<std::string> zones;
  for (std::size_t step = 0; step <= nodeset.on_stockout.size(); ++step) {
    for (const Route& route : routes_of(nodeset, step)) {
      if (route.zones.empty()) return {};
      zones.insert(route.zones.begin(), route.zones.end());
    }
  }
  return zones;
}

/// For the few nodes that are usually looked for; all of the nodeset's for many.
std::string pattern_of(const std::vector<NodeName>& nodes) {
  constexpr std::size_t kMost = 20;
  if (nodes.size() > kMost) return {};
  std::string joined;
  for (const NodeName& node : nodes) {
    if (!joined.empty()) joined += '|';
    joined += node.text;
  }
  return fmt::format("({})", joined);
}

/// The look at one nodeset.
struct NodesetLook {
  Cloud& cloud;
  NodesetView& view;
  const std::string& cluster;
  const NodesetConfig& nodeset;
  const JobsOfNodes& jobs;
  std::vector<NodeName> nodes{};  ///< that are looked for
  std::set<std::size_t> own{};    ///< numbers of the nodeset's own groups that they belong in

  /// Any of the nodeset's groups may hold a node's VM, also one that the config no longer speaks
  /// of.
  void start() {
    cloud.fetch_groups(group_name_prefix(cluster, nodeset.name),
                       [this](Result<std::vector<Group>> got) {
                         if (got)
                           take(*std::move(got));
                         else
                           view.error = std::move(got).error().in("listing the groups");
                       });
    // The nodes say which of its own groups count. With a group for each job it may have none.
    if (nodeset.mig_scope == MigScope::Job) return;
    for (const std::size_t number : own)
      look_into(cloud, view, nodeset_group_name(cluster, nodeset.name, number));
  }

  /// Those that have something in them are looked into; of many jobs' own ones only some.
  void take(std::vector<Group> found) {
    constexpr std::size_t kFew = 2;
    std::vector<const Group*> of_jobs;
    const std::set<MigName> looked_at =
        nodeset.mig_scope == MigScope::Job ? std::set<MigName>{} : own_groups(cluster, nodeset);
    for (Group& group : found) {
      const MigName name = group.name;
      const bool is_ours = is_owned(group.description, cluster, nodeset.name);
      const bool is_empty = group.target_size == 0;
      GroupView& seen = view.groups[name];
      seen.group = std::move(group);
      if (!is_ours || is_empty) continue;
      if (looked_at.contains(name)) {
        // None of the nodes belongs in it, but what it has counts.
        const bool is_looked_into = std::any_of(own.begin(), own.end(), [&](std::size_t number) {
          return nodeset_group_name(cluster, nodeset.name, number) == name;
        });
        if (!is_looked_into) seen.is_read = false;
        continue;
      }
      if (described_number(seen.group->description, "job") != 0)
        of_jobs.push_back(&*seen.group);
      else
        look_into(cloud, view, name);
    }
    if (of_jobs.size() > kFew) return find_among(of_jobs);
    for (const Group* group : of_jobs) look_into(cloud, view, group->name);
  }

  /// A queued node is in its job's group, a VM says which group has made it.
  void find_among(const std::vector<const Group*>& groups) {
    std::set<JobId> known;
    if (jobs) {
      std::vector<JobId> owners;
      for (const Group* group : groups)
        owners.push_back(described_number(group->description, "job"));
      for (const JobId job : jobs(owners)) known.insert(job);
    }
    for (const Group* group : groups) {
      if (known.contains(described_number(group->description, "job")))
        look_into(cloud, view, group->name);
      else
        view.groups[group->name].is_read = false;
    }
    std::set<std::string> zones = zones_of(nodeset);
    if (zones.empty()) zones.insert(std::string{});  // all of them
    for (const std::string& zone : zones) {
      cloud.fetch_vms({.zone = zone, .name_pattern = pattern_of(nodes), .with_group = true},
                      [this](Result<std::vector<ZoneVm>> got) {
                        if (got) return look_where_made(*got);
                        if (!view.error) view.error = std::move(got).error();
                      });
    }
  }

  void look_where_made(const std::vector<ZoneVm>& vms) {
    for (const ZoneVm& vm : vms) {
      if (std::find(nodes.begin(), nodes.end(), vm.vm.name) == nodes.end()) continue;
      const auto found = view.groups.find(vm.group);
      if (found == view.groups.end() || found->second.is_read) continue;
      look_into(cloud, view, vm.group);
    }
  }
};

/// A group that was made while we looked: what is in it was seen, it was not. False if there is
/// none.
bool look_again(Cloud& cloud, FleetView& fleet) {
  bool is_any = false;
  for (auto& [index, view] : fleet) {
    for (auto& [name, group] : view.groups) {
      if (group.group || (group.requests.empty() && group.instances.empty())) continue;
      is_any = true;
      cloud.fetch_group(name, [&view = view, &group = group, name = name](Result<Group> got) {
        if (!got) return note_failure(view, name, "reading the properties", std::move(got).error());
        group.group = std::move(*got);
      });
    }
  }
  return is_any;
}

/// VMs in no group: one list for all of these nodesets.
void look_at_loose(Cloud& cloud,
                   FleetView& fleet,
                   const Config& config,
                   const std::string& cluster,
                   const std::set<std::size_t>& nodesets) {
  if (nodesets.empty()) return;
  cloud.fetch_loose_instances(
      cluster, {}, [&fleet, &config, cluster, nodesets](Result<std::vector<Instance>> got) {
        if (!got) {
          const Error error = std::move(got).error().in("listing the VMs that are in no group");
          for (const std::size_t index : nodesets) {
            if (!fleet[index].error) fleet[index].error = error;
          }
          return;
        }
        auto loose = by_nodeset(*std::move(got), cluster);
        for (const std::size_t index : nodesets) {
          const std::string& name = config.nodesets[index].name;
          fleet[index].groups[{}] = {.group = loose_group(cluster, name),
                                     .requests = {},
                                     .instances = std::move(loose[name])};
        }
      });
}

}  // namespace

std::map<std::string, std::vector<Instance>> by_nodeset(std::vector<Instance> loose,
                                                        const std::string& cluster) {
  std::map<std::string, std::vector<Instance>> sorted;
  for (Instance& instance : loose) {
    if (auto nodeset = owned_nodeset(instance.description, cluster))
      sorted[*nodeset].push_back(std::move(instance));
  }
  return sorted;
}

Group loose_group(const std::string& cluster, const std::string& nodeset) {
  return {.name = {}, .description = ownership_mark(cluster, nodeset), .kind = GroupKind::Loose};
}

std::vector<JobId> jobs_of_nodes(const std::vector<Job>& jobs, std::span<const NodeName> nodes) {
  const std::unordered_set<NodeName> wanted(nodes.begin(), nodes.end());
  std::vector<JobId> ids;
  for (const Job& job : jobs) {
    const bool has_any = std::any_of(job.nodes.begin(), job.nodes.end(), [&](const auto& node) {
      return wanted.contains(node);
    });
    if (has_any) ids.push_back(job.id);
  }
  return ids;
}

std::vector<JobId> jobs_to_look_at(const std::vector<Job>& all,
                                   std::span<const NodeName> nodes,
                                   const std::vector<JobId>& owners) {
  constexpr std::size_t kMostGone = 10;
  std::unordered_set<JobId> holding;
  for (const Job& job : all) {
    if (job.holds_nodes()) holding.insert(job.id);
  }
  std::set<JobId, std::greater<>> gone;
  for (const JobId owner : owners) {
    if (!holding.contains(owner)) gone.insert(owner);
  }
  std::vector<JobId> ids = jobs_of_nodes(all, nodes);
  const std::size_t most = ids.size() + kMostGone;
  for (const JobId id : gone) {
    if (ids.size() >= most) break;
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

void add_loose(Cloud& cloud,
               const Config& config,
               const std::string& cluster,
               const std::set<std::string>& nodesets,
               FleetView& fleet) {
  std::set<std::size_t> unseen;
  for (const auto& [index, view] : fleet) {
    if (nodesets.contains(config.nodesets[index].name) && !view.groups.contains({}))
      unseen.insert(index);
  }
  look_at_loose(cloud, fleet, config, cluster, unseen);
  if (!unseen.empty()) cloud.run();
}

FleetView fetch_fleet(Cloud& cloud,
                      const Config& config,
                      const std::string& cluster,
                      std::span<const NodeName> nodes,
                      const JobsOfNodes& jobs) {
  FleetView fleet;
  std::map<std::size_t, NodesetLook> looks;
  for (const NodeName& node : nodes) {
    const Config::Place* place = config.find(node);
    if (place == nullptr) continue;
    const NodesetConfig& nodeset = config.nodesets[place->nodeset];
    NodesetLook& look = looks
                            .try_emplace(place->nodeset,
                                         NodesetLook{.cloud = cloud,
                                                     .view = fleet[place->nodeset],
                                                     .cluster = cluster,
                                                     .nodeset = nodeset,
                                                     .jobs = jobs})
                            .first->second;
    look.nodes.push_back(node);
    look.own.insert(place->index / group_capacity(nodeset));
  }
  for (auto& [index, look] : looks) look.start();
  std::set<std::size_t> bulk;
  for (const auto& [index, view] : fleet) {
    if (may_use_bulk(config.nodesets[index])) bulk.insert(index);
  }
  look_at_loose(cloud, fleet, config, cluster, bulk);
  cloud.run();
  if (look_again(cloud, fleet)) cloud.run();
  return fleet;
}

}  // namespace flex
