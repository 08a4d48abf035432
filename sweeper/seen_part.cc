// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/seen_part.h"

#include "lib/core/names.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace flex {

namespace {

const std::string* nodeset_of(const Config& config, const NodeName& node) {
  const Config::Place* place = config.find(node);
  return place == nullptr ? nullptr : &config.nodesets[place->nodeset].name;
}

bool touches(const Config& config, const Job& job, const std::set<std::string>& nodesets) {
  return std::any_of(job.nodes.begin(), job.nodes.end(), [&](const NodeName& node) {
    const std::string* const set = nodeset_of(config, node);
    return set != nullptr && nodesets.contains(*set);
  });
}

/// What the keys of sightings and waiters speak of: a node, a group, a request of a group, or a
/// nodeset with something behind it.
class About {
 public:
  About(const Config& config, const std::string& cluster, const std::set<std::string>& hidden)
      : config_(config), hidden_(hidden) {
    for (const std::string& set : hidden) prefixes_.push_back(group_name_prefix(cluster, set));
  }

  [[nodiscard]] bool is_hidden(const NodeName& node) const {
    const std::string* const set = nodeset_of(config_, node);
    return set != nullptr && hidden_.contains(*set);
  }

  [[nodiscard]] bool is_hidden_nodeset(const std::string& set) const {
    return hidden_.contains(set);
  }

  [[nodiscard]] bool is_hidden_key(std::string_view key) const {
    const std::string first(key.substr(0, key.find_first_of(" /")));
    return hidden_.contains(first) || is_hidden(NodeName{first}) ||
           std::any_of(prefixes_.begin(), prefixes_.end(), [&](const std::string& prefix) {
             return key.starts_with(prefix);
           });
  }

  /// "rule key".
  [[nodiscard]] bool is_hidden_sighting(std::string_view sighting) const {
    const auto space = sighting.find(' ');
    return space != std::string_view::npos && is_hidden_key(sighting.substr(space + 1));
  }

 private:
  const Config& config_;
  const std::set<std::string>& hidden_;
  std::vector<std::string> prefixes_{};
};

template <class Map, class IsHidden>
void put_back(Map& now, const Map& before, const IsHidden& is_hidden) {
  std::erase_if(now, [&](const auto& entry) { return is_hidden(entry.first); });
  for (const auto& entry : before) {
    if (is_hidden(entry.first)) now.insert(entry);
  }
}

}  // namespace

namespace {

/// A group may hold nodes of another nodeset: that was renamed, or its nodes were moved. Where one
/// of them cannot be seen, neither can the others.
void hide_with(const Config& config, const SweptGroup& group, std::set<std::string>& hidden) {
  std::set<std::string> sets{group.nodeset};
  const auto add = [&](const NodeName& node) {
    if (const std::string* const set = nodeset_of(config, node)) sets.insert(*set);
  };
  for (const Instance& instance : group.instances) add(instance.name);
  for (const ResizeRequest& request : group.requests) {
    if (request.is_active()) std::for_each(request.nodes.begin(), request.nodes.end(), add);
  }
  const bool is_hidden = std::any_of(
      sets.begin(), sets.end(), [&](const std::string& set) { return hidden.contains(set); });
  if (is_hidden) hidden.insert(sets.begin(), sets.end());
}

}  // namespace

std::set<std::string> hidden_nodesets(const Config& config, const Snapshot& shot) {
  std::set<std::string> hidden;
  for (const auto& [set, error] : shot.unseen) hidden.insert(set);
  if (hidden.empty()) return hidden;
  for (std::size_t before = 0; before != hidden.size();) {
    before = hidden.size();
    for (const Job& job : shot.jobs.items) {
      if (!job.holds_nodes() || !touches(config, job, hidden)) continue;
      for (const NodeName& node : job.nodes) {
        if (const std::string* const set = nodeset_of(config, node)) hidden.insert(*set);
      }
    }
    for (const SweptGroup& group : shot.groups) hide_with(config, group, hidden);
  }
  return hidden;
}

Snapshot without(const Config& config, const Snapshot& shot, const std::set<std::string>& hidden) {
  Snapshot seen = shot;
  std::erase_if(seen.groups,
                [&](const SweptGroup& group) { return hidden.contains(group.nodeset); });
  std::erase_if(seen.nodes.items, [&](const Node& node) {
    const std::string* const set = nodeset_of(config, node.name);
    return set != nullptr && hidden.contains(*set);
  });
  std::erase_if(seen.jobs.items,
                [&](const Job& job) { return job.holds_nodes() && touches(config, job, hidden); });
  // A group that cannot be seen may use them.
  seen.policies.clear();
  return seen;
}

void restore(Memory& memory,
             const Memory& before,
             const Config& config,
             const std::string& cluster,
             const std::set<std::string>& hidden) {
  const About about{config, cluster, hidden};
  const auto is_node = [&](const NodeName& node) { return about.is_hidden(node); };
  const auto is_nodeset = [&](const std::string& set) { return about.is_hidden_nodeset(set); };
  put_back(memory.retries, before.retries, is_node);
  put_back(memory.raised, before.raised, is_node);
  put_back(memory.armed, before.armed, is_node);
  put_back(memory.lease_ends, before.lease_ends, is_node);
  put_back(memory.boots, before.boots, is_node);
  put_back(memory.drains, before.drains, is_node);
  put_back(memory.worked, before.worked, is_node);
  put_back(memory.repairs, before.repairs, is_node);
  put_back(memory.boot_failures, before.boot_failures, is_nodeset);
  put_back(memory.stopped, before.stopped, is_nodeset);
  put_back(memory.stockouts, before.stockouts, [&](const std::string& waiter) {
    return about.is_hidden_key(waiter);
  });
  put_back(memory.shut, before.shut, [&](const std::string& waiter) {
    return about.is_hidden_key(waiter);
  });
  put_back(memory.sightings, before.sightings, [&](const std::string& sighting) {
    return about.is_hidden_sighting(sighting);
  });
  // Of jobs that were not seen.
  memory.notes.insert(before.notes.begin(), before.notes.end());
  memory.warned.insert(before.warned.begin(), before.warned.end());
  memory.eligibility.insert(before.eligibility.begin(), before.eligibility.end());
}

}  // namespace flex
