// SPDX-License-Identifier: GPL-2.0-or-later
// The ways to get VMs for a nodeset: as its own keys say, or as on_stockout says later (pure).
#pragma once

#include "lib/config/config.h"

#include <cstddef>
#include <string>
#include <vector>

namespace flex {

/// One way: what is asked for, and in which of the nodeset's groups.
struct Route {
  std::size_t step = 0;  ///< 0: the nodeset's own keys; n: after the n-th entry of on_stockout
  Mode mode = Mode::Queued;
  std::string instance_template{};
  std::vector<std::string> zones{};
  std::string variant{};  ///< in its groups' names; empty: the nodeset's first group
  bool is_race = false;   ///< one of several that are tried at once
};

/// Several in a race. A step beyond the last is the last.
[[nodiscard]] std::vector<Route> routes_of(const NodesetConfig& nodeset, std::size_t step = 0);

/// The kind of group that a mode needs.
[[nodiscard]] GroupKind kind_of(Mode mode);

/// Its VMs may be in no group.
[[nodiscard]] bool may_use_bulk(const NodesetConfig& nodeset);

}  // namespace flex
