// SPDX-License-Identifier: GPL-2.0-or-later
// What Compute Engine has for some nodesets: one look, all calls side by side.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/gce/cloud.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace flex {

/// One group: what it is, its requests and its entries. `group` is empty if it does not exist. VMs
/// that are in no group are those of a group without a name, of the kind Loose.
struct GroupView {
  std::optional<Group> group{};
  std::vector<ResizeRequest> requests{};
  std::vector<Instance> instances{};
  bool is_read = true;  ///< else only its record is known: none of the nodes looked for is in it
};

struct NodesetView {
  std::map<MigName, GroupView> groups{};  ///< by name
  /// Set if anything about the nodeset could not be read: then nothing may be decided about it.
  std::optional<Error> error{};
};

/// By the nodeset's index in Config::nodesets.
using FleetView = std::map<std::size_t, NodesetView>;

/// Of the jobs that have groups of their own (the argument): those whose groups may hold the nodes
/// looked for.
using JobsOfNodes = std::function<std::vector<JobId>(const std::vector<JobId>&)>;

/// Looks at the groups that hold, or would hold, the VMs of these nodes, in one wave: the nodeset's
/// groups, and requests and entries of its own ones; then of others that have something in them
/// (a job's own, a race's, those of a way that the config no longer has). Of many jobs' own groups
/// only those are read that belong to one of `jobs`, or that have made a VM of one of the nodes.
/// Runs the cloud.
[[nodiscard]] FleetView fetch_fleet(Cloud& cloud,
                                    const Config& config,
                                    const std::string& cluster,
                                    std::span<const NodeName> nodes,
                                    const JobsOfNodes& jobs = {});

/// Adds what of these nodesets (by name) is in no group, where that has not been looked at: an
/// earlier config may have had them use bulkInsert. Runs the cloud.
void add_loose(Cloud& cloud,
               const Config& config,
               const std::string& cluster,
               const std::set<std::string>& nodesets,
               FleetView& fleet);

/// The ids of the jobs that have, or had, one of these nodes.
[[nodiscard]] std::vector<JobId> jobs_of_nodes(const std::vector<Job>& jobs,
                                               std::span<const NodeName> nodes);

/// Of the jobs that have groups (`owners`), as slurmctld knows them (`all`): those that have, or
/// had, one of these nodes; and some of those that are gone or hold no nodes: a request that is
/// left of one may be for any node. The newest first; the sweeper cancels what is left of others.
[[nodiscard]] std::vector<JobId> jobs_to_look_at(const std::vector<Job>& all,
                                                 std::span<const NodeName> nodes,
                                                 const std::vector<JobId>& owners);

/// Puts VMs that are in no group where they belong: by nodeset, each a group of the kind Loose. The
/// second is the nodeset's name.
[[nodiscard]] std::map<std::string, std::vector<Instance>> by_nodeset(std::vector<Instance> loose,
                                                                      const std::string& cluster);

/// The group that stands for a nodeset's VMs that are in none.
[[nodiscard]] Group loose_group(const std::string& cluster, const std::string& nodeset);

}  // namespace flex
