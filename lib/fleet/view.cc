// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/view.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

/// Any of the nodeset's groups may hold a node's VM, also one that the config no longer speaks of.
/// Those that have something in them are looked into, but for its own: the nodes say which of those
/// count.
void look_at_groups(Cloud& cloud,
                    NodesetView& view,
                    const std::string& cluster,
                    const NodesetConfig& nodeset) {
  cloud.fetch_groups(group_name_prefix(cluster, nodeset.name),
                     [&cloud, &view, &nodeset, cluster](Result<std::vector<Group>> got) {
                       if (!got) {
                         view.error = std::move(got).error().in("listing the groups");
                         return;
                       }
                       const std::set<MigName> own = own_groups(cluster, nodeset);
                       for (Group& group : *got) {
                         const MigName name = group.name;
                         const bool is_ours = is_owned(group.description, cluster, nodeset.name);
                         const bool is_empty = group.target_size == 0;
                         view.groups[name].group = std::move(group);
                         if (is_ours && !is_empty && !own.contains(name))
                           look_into(cloud, view, name);
                       }
                     });
}

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

/// bulkInsert: one list for all nodesets.
void look_at_loose(Cloud& cloud,
                   FleetView& fleet,
                   const Config& config,
                   const std::string& cluster) {
  const auto concerns = [&](const auto& entry) {
    return may_use_bulk(config.nodesets[entry.first]);
  };
  if (std::none_of(fleet.begin(), fleet.end(), concerns)) return;
  cloud.fetch_loose_instances(
      cluster, [&fleet, &config, cluster, concerns](Result<std::vector<Instance>> got) {
        if (!got) {
          const Error error = std::move(got).error().in("listing the VMs that are in no group");
          for (auto& entry : fleet) {
            if (concerns(entry) && !entry.second.error) entry.second.error = error;
          }
          return;
        }
        auto loose = by_nodeset(*std::move(got), cluster);
        for (auto& [index, view] : fleet) {
          const std::string& name = config.nodesets[index].name;
          if (!may_use_bulk(config.nodesets[index])) continue;
          view.groups[{}] = {.group = loose_group(cluster, name),
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

FleetView fetch_fleet(Cloud& cloud,
                      const Config& config,
                      const std::string& cluster,
                      std::span<const NodeName> nodes) {
  FleetView fleet;
  for (const NodeName& node : nodes) {
    const Config::Place* place = config.find(node);
    if (place == nullptr) continue;
    const NodesetConfig& nodeset = config.nodesets[place->nodeset];
    const bool is_new = fleet.find(place->nodeset) == fleet.end();
    NodesetView& view = fleet[place->nodeset];
    if (is_new) look_at_groups(cloud, view, cluster, nodeset);
    const MigName name = group_of_node(cluster, nodeset, place->index);
    if (view.groups.find(name) == view.groups.end()) look_into(cloud, view, name);
  }
  look_at_loose(cloud, fleet, config, cluster);
  cloud.run();
  if (look_again(cloud, fleet)) cloud.run();
  return fleet;
}

}  // namespace flex
