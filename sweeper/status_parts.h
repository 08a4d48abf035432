// SPDX-License-Identifier: GPL-2.0-or-later
// The lists of status.json, each in its own file (pure; only for status.cc).
#pragma once

#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace flex::status {

using Json = nlohmann::json;

/// What one look shows.
struct Look {
  const Config& config;
  const Snapshot& shot;
  const Picture& picture;
  const Memory& memory;
};

/// A list that was cut so that the file stays small.
struct CutList {
  Json items = Json::array();
  std::size_t omitted = 0;
};

/// No list is longer than this.
inline constexpr std::size_t kMostRows = 300;

/// "2026-11-16T18:35:00Z"; empty for a time that is not known.
[[nodiscard]] std::string iso(TimePoint time);

/// `is_blind`: only what the config says is known.
[[nodiscard]] Json nodesets(const Look& look, bool is_blind);
/// Those that wait or failed, then the newest of the others.
[[nodiscard]] CutList requests(const Look& look);
/// VMs that are alike are one row; where there are too many rows for that, those that end at about
/// the same time are.
[[nodiscard]] CutList vms(const Look& look);
/// Those that hold nodes of ours and wait for their VMs: who waits longest first.
[[nodiscard]] CutList waiting_jobs(const Look& look);
/// Those that run there: whose VMs end first.
[[nodiscard]] CutList running_jobs(const Look& look);
[[nodiscard]] Json retries(const Look& look);
/// Groups in which nothing is asked for now for those who wait, until when and why.
[[nodiscard]] CutList shut_ways(const Look& look);

}  // namespace flex::status
