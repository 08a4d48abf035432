// SPDX-License-Identifier: GPL-2.0-or-later
// How often Compute Engine was called, as the programs that come and go tell it to the sweeper: an
// event "calls" in the history, with a member "METHOD STATUS" for each kind of answer (pure).
#pragma once

#include "lib/fleet/history.h"
#include "lib/gce/cloud.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

class CallTally {
 public:
  void add(const CallNote& note);

  [[nodiscard]] bool empty() const { return counts_.empty(); }

  [[nodiscard]] Event event(std::string_view program, TimePoint when) const;

 private:
  std::map<std::pair<std::string, int>, std::uint64_t> counts_{};
  std::uint64_t retries_ = 0;
  std::chrono::milliseconds took_{};
};

struct CallCount {
  std::string method{};
  int status = 0;
  std::uint64_t count = 0;
};

struct CallCounts {
  std::vector<CallCount> calls{};
  std::uint64_t retries = 0;
};

/// What an event of CallTally says; what makes no sense is left out.
[[nodiscard]] CallCounts calls_in(const Event& event);

}  // namespace flex
