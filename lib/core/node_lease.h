// SPDX-License-Identifier: GPL-2.0-or-later
// What a node's extra says of its VM: "flex(end=1763310900,nodeset=a3u,request=j12-0f3a)", written
// by the sweeper, read on the node by the plugin (pure, small: also for the plugin).
#pragma once

#include "lib/core/domain.h"

#include <optional>
#include <string>
#include <string_view>

namespace flex {

struct NodeLease {
  TimePoint end{};  ///< Google's terminationTimestamp
  std::string nodeset{};
  std::string request{};  ///< that made the VM; empty: none is known

  friend bool operator==(const NodeLease&, const NodeLease&) = default;
};

/// The token alone.
[[nodiscard]] std::string write_lease(const NodeLease& lease);

/// Nothing if no token of the text has a sensible "end". Also where the text is JSON with the token
/// in a string.
[[nodiscard]] std::optional<NodeLease> read_lease(std::string_view extra);

}  // namespace flex
