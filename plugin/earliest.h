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

/// What slurmctld said.
struct Answer {
  std::optional<NodeLease> lease{};
  bool is_whole = true;  ///< of all of the job's nodes, as far as this node can know them
};

/// One line; also for none, which is true at this time.
[[nodiscard]] std::string to_line(const Answer& answer, TimePoint now);
/// The line of a question that nobody answered.
[[nodiscard]] std::string unanswered_line(TimePoint now);
/// False if it is time to ask again: five minutes after no answer, and after an answer that knew of
/// no end.
[[nodiscard]] bool is_good(std::string_view line, TimePoint now);
[[nodiscard]] Answer from_line(std::string_view line, TimePoint now);

}  // namespace flex::plugin
