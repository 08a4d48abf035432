// SPDX-License-Identifier: GPL-2.0-or-later
// Which request made the VM of a node (pure).
#pragma once

#include "sweeper/snapshot.h"

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <utility>

namespace flex {

/// The newest request in the VM's group that was served, or is being served. Reads the snapshot
/// when it is first asked.
class VmOrigins {
 public:
  explicit VmOrigins(const Snapshot& shot) : shot_(shot) {}

  /// Null: none is listed any more.
  [[nodiscard]] const ResizeRequest* find(const SweptGroup& group, const NodeName& node);

 private:
  using Place = std::pair<const SweptGroup*, NodeName>;

  struct HashPlace {
    std::size_t operator()(const Place& place) const {
      return std::hash<const void*>{}(place.first) ^ std::hash<NodeName>{}(place.second);
    }
  };

  void read();

  const Snapshot& shot_;
  bool is_read_ = false;
  std::unordered_map<Place, const ResizeRequest*, HashPlace> by_node_{};
};

}  // namespace flex
