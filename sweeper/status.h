// SPDX-License-Identifier: GPL-2.0-or-later
// status.json: what the sweeper sees and does, for flexctl, pages and people.
#pragma once

#include "lib/config/config.h"
#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace flex {

/// An action that was taken, for the list of the last ones.
struct PastAction {
  TimePoint when{};
  std::string rule{};
  std::string what{};
  std::string target{};
  std::string nodes{};
  JobId job = 0;
  std::string why{};
};

struct RoundReport {
  std::uint64_t number = 0;
  TimePoint started{};
  std::chrono::milliseconds took{};
  bool is_complete = false;
  std::string error{};  ///< why not
  std::size_t calls = 0;
  std::size_t done = 0;
  std::size_t failed = 0;
  std::size_t again = 0;
  std::size_t postponed = 0;
};

/// Something of ours that nobody needs and that has not gone away.
struct Leak {
  std::string kind{};    ///< "vm", "request", "group", …
  std::string target{};  ///< its name; folded where there are several
  TimePoint since{};
  std::string why{};
};

struct Status {
  std::string state = "starting";  ///< active | passive | waiting | stopped
  std::string why{};
  TimePoint started{};
  TimePoint last_complete{};
  RoundReport last_round{};
  std::uint64_t failures_in_a_row = 0;
  bool is_blind = false;  ///< no look has been complete since it is in charge: nothing is known
  std::deque<PastAction> actions{};
  std::vector<Leak> leaks{};
  std::string http{};  ///< where it is served: "127.0.0.1:9762"; empty: nowhere
  Seconds interval{};  ///< between rounds

  /// Keeps the last 100, with few of those that only write a comment.
  void remember(TimePoint when, const Action& action);
};

/// Folded: its size follows the number of requests and jobs, not that of nodes.
[[nodiscard]] std::string to_json_text(const Status& status,
                                       const Config& config,
                                       const Snapshot& shot,
                                       const Memory& memory);

}  // namespace flex
