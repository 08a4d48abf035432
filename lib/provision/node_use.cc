// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/node_use.h"

#include "lib/core/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace flex {

std::set<NodeName> nodes_in_use(const NodesetView& view,
                                const std::string& cluster,
                                const std::string& nodeset) {
  std::set<NodeName> used;
  for (const auto& [name, group] : view.groups) {
    if (!group.group || !is_owned(group.group->description, cluster, nodeset)) continue;
    for (const ResizeRequest& request : group.requests) {
      if (request.is_active()) used.insert(request.nodes.begin(), request.nodes.end());
    }
    for (const Instance& instance : group.instances) {
      if (!instance.is_dead()) used.insert(instance.name);
    }
    for (std::int64_t i = 0; !group.is_read && i < group.group->target_size; ++i)
      used.insert({fmt::format("{} {}", name, i)});
  }
  return used;
}

std::map<std::size_t, NodesetRoom> find_room(const RoomInput& input) {
  std::map<std::size_t, NodesetRoom> rooms;
  for (const auto& [index, view] : input.fleet) {
    const NodesetConfig& nodeset = input.config.nodesets[index];
    if (nodeset.max_nodes == 0) continue;
    NodesetRoom& room = rooms[index];
    room.name = nodeset.name;
    room.max_nodes = nodeset.max_nodes;
    room.used = nodes_in_use(view, input.cluster, nodeset.name);
    room.kept.insert(nodeset.static_nodes.begin(), nodeset.static_nodes.end());
    const auto waiting = input.queue.nodesets.find(nodeset.name);
    room.waiting = waiting == input.queue.nodesets.end() ? 0 : waiting->second;
  }
  for (const NodeName& node : input.asked) {
    const Config::Place* const place = input.config.find(node);
    const auto room = place == nullptr ? rooms.end() : rooms.find(place->nodeset);
    if (room != rooms.end()) room->second.used.insert(node);
  }
  return rooms;
}

std::size_t count_active_requests(const FleetView& fleet) {
  std::size_t active = 0;
  for (const auto& [nodeset, view] : fleet) {
    for (const auto& [name, group] : view.groups) {
      // One that was not looked into has at least one.
      if (!group.is_read && group.group && group.group->actions.creating > 0) ++active;
      active += static_cast<std::size_t>(
          std::count_if(group.requests.begin(), group.requests.end(), [](const ResizeRequest& one) {
            return one.is_active();
          }));
    }
  }
  return active;
}

}  // namespace flex
