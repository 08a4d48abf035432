// SPDX-License-Identifier: GPL-2.0-or-later
// Where each node is, by its name. Rules look nodes up millions of times on a large cluster, and
// what that costs is the memory that has to be fetched: std::unordered_map takes four or five lines
// of it for one look, this takes two, and none where the last look was at a node beside it.
#pragma once

#include "lib/core/names.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flex {

/// Which nodeset a node is in, the how-manieth of its nodes it is, and whether it is one of its
/// static ones.
struct NodePlace {
  std::size_t nodeset = 0;
  std::size_t index = 0;
  bool is_static = false;
};

/// A hash table with open addressing. Nothing is ever taken out of it. Pointers and references
/// hold until the next node is added.
class NodePlaces {
 public:
  /// Null: the node is in no nodeset.
  [[nodiscard]] const NodePlace* find(const NodeName& node) const;

  /// Adds the node unless it is there; its place, and whether it is new.
  std::pair<NodePlace*, bool> try_emplace(const NodeName& node, NodePlace place);

  /// Its place; a new one if it has none.
  NodePlace& operator[](const NodeName& node) { return *try_emplace(node, {}).first; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    NodeName node{};
    NodePlace place{};
  };

  /// Half of the hash tells most names apart without a look at them.
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t entry = 0;  ///< its number in entries_, from 1 on; 0: the slot is free
  };

  /// Where the node is, or else would be.
  [[nodiscard]] const Slot& slot_of(const NodeName& node) const;
  void grow();

  std::vector<Entry> entries_{};
  std::vector<Slot> slots_{};  ///< a power of two of them, at most half of them taken
};

}  // namespace flex
