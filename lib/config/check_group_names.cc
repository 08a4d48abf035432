// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/checks.h"
#include "lib/config/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace flex {

namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What stands after a '-' in the name of a group that is not the nodeset's first: "j12" (of a
/// job), "q" and "i" (of the other kind), "s1" (a step of on_stockout), "zb" (a zone of a race),
/// "r" (a renewal). "2", the second part of a large one, is not meant.
bool is_reserved(std::string_view word) {
  if (word == "q" || word == "i" || word == "r") return true;
  if (word.size() < 2) return false;
  const std::string_view rest = word.substr(1);
  switch (word.front()) {
    case 'j':
    case 's':
      return is_number(rest);
    case 'z':
      return is_zone_end(rest);
    default:
      return false;
  }
}

using NodesetIndex = std::unordered_map<std::string_view, std::size_t>;

/// The nodeset that may have a group of this name beside its first: "a" for "a-j12", "a-j12-2",
/// "a-zb-r".
NodesetIndex::const_iterator find_owner(std::string_view name, const NodesetIndex& nodesets) {
  bool is_taken = false;
  for (std::string_view rest = name;;) {
    const std::size_t dash = rest.rfind('-');
    if (dash == std::string_view::npos) return nodesets.end();
    const std::string_view word = rest.substr(dash + 1);
    if (is_reserved(word)) {
      is_taken = true;
    } else if (!is_number(word)) {
      return nodesets.end();
    }
    rest = rest.substr(0, dash);
    // Numbers alone are judged by how many groups the other really has.
    if (const auto owner = nodesets.find(rest); is_taken && owner != nodesets.end()) return owner;
  }
}

}  // namespace

void check_group_names(const Config& config, const Sources& sources, Problems& problems) {
  const std::string cluster = config.cluster.empty() ? "cluster" : config.cluster;
  std::unordered_map<MigName, std::size_t> owners;
  NodesetIndex by_name;
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) by_name[config.nodesets[i].name] = i;
  const auto clash = [&](std::size_t i, std::size_t other, const std::string& group) {
    problems.add(sources.nodesets[i].self,
                 fmt::format("nodesets '{}' and '{}' would both have a group '{}'",
                             config.nodesets[other].name,
                             config.nodesets[i].name,
                             group),
                 "rename one of them");
  };
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    const NodesetConfig& nodeset = config.nodesets[i];
    const std::size_t capacity = group_capacity(nodeset);
    const std::size_t parts =
        std::max<std::size_t>(1, (nodeset.nodes.size() + capacity - 1) / capacity);
    for (std::size_t part = 0; part < parts; ++part) {
      const MigName group = nodeset_group_name(cluster, nodeset.name, part);
      const auto [owner, is_new] = owners.try_emplace(group, i);
      if (!is_new) clash(i, owner->second, group.text);
    }
    if (const auto other = find_owner(nodeset.name, by_name); other != by_name.end())
      clash(i, other->second, nodeset_group_name(cluster, nodeset.name).text);
  }
}

}  // namespace flex
