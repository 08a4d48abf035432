// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/view.h"

#include "lib/core/names.h"
#include "lib/fleet/groups.h"

#include <fmt/format.h>

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

void look_at_group(Cloud& cloud, NodesetView& view, const MigName& name) {
  cloud.fetch_group(name, [&view, name](Result<Group> got) {
    if (!got) return note_failure(view, name, "reading the properties", std::move(got).error());
    view.groups[name].group = std::move(*got);
  });
  look_into(cloud, view, name);
}

/// mig_scope job: any of the nodeset's groups may hold a node's VM, so all that have something in
/// them count.
void look_at_all_groups(Cloud& cloud,
                        NodesetView& view,
                        const std::string& cluster,
                        const NodesetConfig& nodeset) {
  cloud.fetch_groups(group_name_prefix(cluster, nodeset.name),
                     [&cloud, &view, &nodeset, cluster](Result<std::vector<Group>> got) {
                       if (!got) {
                         view.error = std::move(got).error().in("listing the groups");
                         return;
                       }
                       for (Group& group : *got) {
                         const MigName name = group.name;
                         const bool is_ours = is_owned(group.description, cluster, nodeset.name);
                         const bool is_empty = group.target_size == 0;
                         view.groups[name].group = std::move(group);
                         if (is_ours && !is_empty) look_into(cloud, view, name);
                       }
                     });
}

}  // namespace

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
    if (nodeset.mig_scope == MigScope::Job) {
      if (is_new) look_at_all_groups(cloud, view, cluster, nodeset);
      continue;
    }
    const MigName name = group_of_node(cluster, nodeset, place->index);
    if (view.groups.find(name) == view.groups.end()) look_at_group(cloud, view, name);
  }
  cloud.run();
  return fleet;
}

}  // namespace flex
