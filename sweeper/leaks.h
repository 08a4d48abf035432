// SPDX-License-Identifier: GPL-2.0-or-later
// What should have been gone by now: the rules' work, checked from outside of the rules (pure). It
// costs money or keeps jobs away, so anything here is worth an alarm.
#pragma once

#include "lib/config/config.h"
#include "sweeper/snapshot.h"
#include "sweeper/status.h"

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

inline constexpr std::array<std::string_view, 5> kLeakKinds{
    "group", "policy", "request", "reservation", "vm"};

/// Remembers since when each thing is not needed; a new one begins anew.
class LeakWatch {
 public:
  /// To be called with each complete look. Those that have not been needed for longer than their
  /// grace and some rounds.
  [[nodiscard]] std::vector<Leak> look(const Config& config, const Snapshot& shot);

 private:
  std::map<std::string, TimePoint> since_{};  ///< "kind target"
};

}  // namespace flex
