// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/cancelled.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/status_parts.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace flex::status {

namespace {

/// Nodes and job of one who waits.
struct Waiter {
  std::string nodeset{};
  JobId job = 0;
  std::vector<NodeName> nodes{};
};

/// By the keys of Memory::shut.
std::map<std::string, Waiter> find_waiters(const Look& look) {
  std::map<std::string, Waiter> waiters;
  for (const NodePicture& node : look.picture.nodes()) {
    const std::string& nodeset = look.config.nodesets[node.nodeset].name;
    const JobId job = node.jobs.empty() || node.is_static ? 0 : node.jobs.front()->id;
    const std::string key = waiter_key(nodeset, job, node.name);
    if (!look.memory.shut.contains(key)) continue;
    Waiter& waiter = waiters[key];
    waiter.nodeset = nodeset;
    waiter.job = job;
    waiter.nodes.push_back(node.name);
  }
  return waiters;
}

}  // namespace

CutList shut_ways(const Look& look) {
  CutList list;
  if (look.memory.shut.empty()) return list;
  for (const auto& [key, waiter] : find_waiters(look)) {
    for (const auto& [group, way] : look.memory.shut.at(key).ways) {
      if (way.next <= look.shot.now) continue;
      if (list.items.size() == kMostRows) {
        ++list.omitted;
        continue;
      }
      Json json{{"nodeset", waiter.nodeset},
                {"job", waiter.job},
                {"nodes", fold_hostlist(waiter.nodes)},
                {"n", waiter.nodes.size()},
                {"group", group.text},
                {"failures", way.failures},
                {"whole_wait", way.next == kNotThisWait},
                {"why", way.why}};
      if (way.next != kNotThisWait) json["until"] = iso(way.next);
      list.items.push_back(std::move(json));
    }
  }
  return list;
}

}  // namespace flex::status
