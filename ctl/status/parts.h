// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of flexctl status: nodesets, requests, jobs, VMs, nodes, actions (pure).
#pragma once

#include "ctl/status/render.h"
#include "ctl/table.h"

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// A line of a table, and what is said below it.
struct Entry {
  Row row{};
  Cell below{};           ///< may be empty
  std::size_t nodes = 0;  ///< so many are in the list that is the last cell; 0: it is none

  [[nodiscard]] std::size_t lines() const { return below.text.empty() ? 1 : 2; }
};

/// Where there is no room for all entries the first are shown.
struct Part {
  std::string title{};
  std::vector<Entry> entries{};
  std::string unlisted{};  ///< what there is of it that the sweeper has not listed; may be empty
  /// No more of them than this on a screen, however much room there is.
  std::size_t most = std::numeric_limits<std::size_t>::max();
};

/// What stands before each row.
inline constexpr std::string_view kIndent = "  ";

/// Those that have something to show, the most important first. Where a part does not fit the
/// terminal's width, what its lines end with is below them.
[[nodiscard]] std::vector<Part> parts_of(const StatusView& view, const Terminal& terminal);

/// "1 node", "2 nodes".
[[nodiscard]] std::string plural(std::size_t count, std::string_view one);

}  // namespace flex
