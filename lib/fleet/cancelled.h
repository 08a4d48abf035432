// SPDX-License-Identifier: GPL-2.0-or-later
// Requests that an admin has cancelled while others for the same nodes go on (a zone of a race, a
// step of on_stockout, a renewal): they are not made again as long as their job waits. Kept in
// <state_dir>/cancelled.json, which flexctl writes and the sweeper reads.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/core/state_file.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct CancelledWay {
  std::string waiter{};  ///< "<nodeset> job <id>", or a node's name: see waiter_key()
  std::uint32_t restart_count = 0;
  MigName group{};
  RequestName request{};
  std::string by{};
  TimePoint since{};

  friend bool operator==(const CancelledWay&, const CancelledWay&) = default;
};

using CancelledWays = std::vector<CancelledWay>;

/// Who waits for a node: a job, in one nodeset; without a job the node itself.
[[nodiscard]] std::string waiter_key(std::string_view nodeset, JobId job, const NodeName& node);

[[nodiscard]] std::string to_text(const CancelledWays& ways);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<CancelledWays> parse_cancelled(std::string_view text);

[[nodiscard]] std::string cancelled_path(const std::string& state_dir);
/// Of two who cancel at once, each would take the other's request for the one that goes on: one
/// after the other, from the look to the end.
[[nodiscard]] Result<FileLock> lock_cancelled(const std::string& state_dir);
/// None if there is no file.
[[nodiscard]] Result<CancelledWays> load_cancelled(const std::string& state_dir);
/// Adds one, and drops those that the sweeper has long taken up.
[[nodiscard]] Result<Done> add_cancelled(const std::string& state_dir, const CancelledWay& way);
/// Takes it back: it could not be cancelled.
[[nodiscard]] Result<Done> remove_cancelled(const std::string& state_dir, const CancelledWay& way);

}  // namespace flex
