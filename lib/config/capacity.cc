// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/config.h"

namespace flex {

std::size_t group_capacity(const NodesetConfig& nodeset) {
  // By distance 1, 2 and 3; a3 machines have larger blocks.
  constexpr std::size_t kSubblock = 22;
  constexpr std::size_t kBlock = 150;
  constexpr std::size_t kLargeBlock = 256;
  constexpr std::size_t kCluster = 1500;
  switch (nodeset.placement.max_distance) {
    case 1:
      return kSubblock;
    case 2:
      return nodeset.machine_type.starts_with("a3-") ? kLargeBlock : kBlock;
    case 3:
      return kCluster;
    default:
      return kMaxGroupSize;
  }
}

}  // namespace flex
