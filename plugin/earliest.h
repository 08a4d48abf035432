// SPDX-License-Identifier: GPL-2.0-or-later
// Which lease counts for a job, and the line a node keeps of it (pure).
#pragma once

#include "lib/core/node_lease.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex::plugin {

/// Of the VM that ends first. One that should be gone already is a node's old word.
[[nodiscard]] std::optional<NodeLease> earliest(const std::vector<NodeLease>& leases,
                                                TimePoint now);

/// One line; also for none.
[[nodiscard]] std::string to_line(const std::optional<NodeLease>& lease);

[[nodiscard]] std::optional<NodeLease> from_line(std::string_view line, TimePoint now);

}  // namespace flex::plugin
