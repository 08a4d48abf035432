// SPDX-License-Identifier: GPL-2.0-or-later
// status.json: what the sweeper sees and does, for flexctl, pages and people.
#pragma once

#include "lib/config/config.h"
#include "lib/fleet/history.h"
#include "sweeper/act.h"
#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace flex {

/// An action that was decided, and what became of it, for the list of the last ones.
struct PastAction {
  TimePoint when{};   ///< the last time
  TimePoint first{};  ///< the same was done before, so often:
  std::size_t times = 1;
  std::string rule{};
  std::string what{};
  std::string target{};
  std::string nodes{};
  JobId job = 0;
  std::string why{};
  std::string result{};  ///< "done", "again", "failed", "skipped"
  std::string error{};   ///< why it failed
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

  /// Keeps the last 100, with few of those that only write a comment. What was the same before is
  /// counted there, so that one thing that fails each round does not push out all others.
  void remember(TimePoint when, const Action& action, const Outcome& outcome);
  /// The same of one that an earlier sweeper has told the history; of other events nothing.
  void recall(const Event& event);
};

/// Folded: its size follows the number of requests and jobs, not that of nodes.
[[nodiscard]] std::string to_json_text(const Status& status,
                                       const Config& config,
                                       const Snapshot& shot,
                                       const Memory& memory);

}  // namespace flex
