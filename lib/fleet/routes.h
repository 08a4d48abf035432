// SPDX-License-Identifier: GPL-2.0-or-later
// The ways to get VMs for a nodeset: as its own keys say, or as on_stockout says later (pure).
#pragma once

#include "lib/config/config.h"

#include <cstddef>
#include <string>
#include <string_view>
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

/// Whether two texts name the same instance template: a bare name is a global one, and what one of
/// them does not say (the project) is not compared.
[[nodiscard]] bool is_same_template(std::string_view left, std::string_view right);

/// Whether the group is as the route would make it: kind, zones and template. What Google does not
/// say of it is as it should be.
[[nodiscard]] bool is_made_for(const Group& group, const Route& route);
/// None of the nodeset's routes would use the group: the config has changed since it was made.
[[nodiscard]] bool is_outdated(const Group& group, const NodesetConfig& nodeset);

/// What a group's name ends with that is made because the route's usual one has other zones or
/// another template: the same for everybody who reads the same config.
[[nodiscard]] std::string other_variant(const Route& route);

/// The kind of group that a mode needs.
[[nodiscard]] GroupKind kind_of(Mode mode);

/// Its VMs may be in no group.
[[nodiscard]] bool may_use_bulk(const NodesetConfig& nodeset);

}  // namespace flex
