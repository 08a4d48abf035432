// SPDX-License-Identifier: GPL-2.0-or-later
// Short ways to write down configs, jobs and views in tests.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/fleet/view.h"

#include <string>
#include <utility>
#include <vector>

namespace flex::test {

/// "n-0" … "n-<count-1>".
inline std::vector<NodeName> nodes(const std::string& prefix, int count, int first = 0) {
  std::vector<NodeName> names;
  for (int i = first; i < first + count; ++i) names.push_back({prefix + "-" + std::to_string(i)});
  return names;
}

inline NodesetConfig nodeset(const std::string& name, std::vector<NodeName> members) {
  NodesetConfig set;
  set.name = name;
  set.nodes = std::move(members);
  set.instance_template = name + "-flex";
  set.zones = {"us-central1-a", "us-central1-b"};
  return set;
}

inline Config config(std::vector<NodesetConfig> sets) {
  Config made;
  made.cluster = "hpc";
  made.region = "us-central1";
  made.nodesets = std::move(sets);
  for (std::size_t i = 0; i < made.nodesets.size(); ++i) {
    for (std::size_t k = 0; k < made.nodesets[i].nodes.size(); ++k)
      made.places[made.nodesets[i].nodes[k]] = {.nodeset = i, .index = k};
    for (const NodeName& node : made.nodesets[i].static_nodes) made.places[node].is_static = true;
  }
  return made;
}

/// A job that is allocated and waits for its nodes.
inline Job job(JobId id, std::vector<NodeName> on, std::optional<Seconds> limit) {
  Job made;
  made.id = id;
  made.nodes = std::move(on);
  made.time_limit = limit;
  made.is_batch = true;
  made.may_requeue = true;
  made.is_running = true;
  made.is_configuring = true;
  return made;
}

inline Group group(const std::string& name, const std::string& cluster, const std::string& set) {
  Group made;
  made.name = {name};
  made.description = ownership_mark(cluster, set);
  return made;
}

inline ResizeRequest request(const std::string& name,
                             RequestState state,
                             std::vector<NodeName> of) {
  ResizeRequest made;
  made.name = {name};
  made.state = state;
  made.nodes = std::move(of);
  return made;
}

inline Instance running(const NodeName& name) {
  Instance made;
  made.name = name;
  made.url = "https://compute/zones/us-central1-a/instances/" + name.text;
  made.status = InstanceStatus::Running;
  return made;
}

/// Google may say PENDING or nothing of an entry that waits: a-1 has the one, a-2 the other.
inline Instance queued(const NodeName& name) {
  Instance made;
  made.name = name;
  made.action = InstanceAction::Creating;
  const bool is_odd = !name.empty() && name.text.back() % 2 == 1;
  made.status = is_odd ? InstanceStatus::Pending : InstanceStatus::None;
  return made;
}

inline Instance deleting(const NodeName& name) {
  Instance made = running(name);
  made.action = InstanceAction::Deleting;
  return made;
}

/// An entry whose VM vanished.
inline Instance dead(const NodeName& name) {
  Instance made;
  made.name = name;
  return made;
}

}  // namespace flex::test
