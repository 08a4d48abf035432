// SPDX-License-Identifier: GPL-2.0-or-later
// A picture that is drawn again and again in place, until somebody ends it.
#pragma once

#include "ctl/terminal.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace flex {

struct Watch {
  std::chrono::seconds interval{2};
  bool is_plain = false;  ///< never a screen: the lines follow each other
  /// What it is about to do, shown while it does it.
  std::function<std::string()> doing{};
  /// The picture for this terminal, its last line left free.
  std::function<std::vector<std::string>(const Terminal&)> draw{};
};

/// Until nobody reads any more; SIGINT, SIGTERM and SIGHUP end the process, with exit code 0. On a
/// terminal it has a screen of its own, which is gone afterwards; elsewhere the pictures follow
/// each other.
void run_watch(const Watch& watch);

/// One picture as what is written to a terminal (pure): no flicker, nothing left of the one before.
[[nodiscard]] std::string frame(const std::vector<std::string>& lines,
                                const std::string& footer,
                                const Terminal& terminal);

}  // namespace flex
