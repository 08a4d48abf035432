// SPDX-License-Identifier: GPL-2.0-or-later
// A sweeper's report as lines for people (pure): what is wrong first, the longest waiting before
// the rest, and never more than the terminal shows.
#pragma once

#include "ctl/status/report.h"
#include "ctl/terminal.h"

#include <string>
#include <vector>

namespace flex {

struct StatusView {
  const SweeperReport& report;
  TimePoint now{};
  std::vector<std::string> trouble{};  ///< in red, above all else
  std::size_t height = 0;              ///< lines that there is room for; 0: as many as it takes
};

/// Lines without their ends; with a height none is wider than the terminal.
[[nodiscard]] std::vector<std::string> render_status(const StatusView& view,
                                                     const Terminal& terminal);

}  // namespace flex
