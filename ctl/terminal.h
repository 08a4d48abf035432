// SPDX-License-Identifier: GPL-2.0-or-later
// How flexctl writes to people: colours only on a terminal, lines that fit.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/text.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace flex {

enum class Colour { Plain, Bold, Dim, Red, Green, Yellow, Blue };

struct Terminal {
  bool is_terminal = false;
  bool has_colour = false;
  std::size_t width = 100;
  std::size_t height = 40;

  /// The text in that colour, or as it is.
  [[nodiscard]] std::string paint(Colour colour, std::string_view text) const;
};

/// Standard output's. No colour if $NO_COLOR is set or $TERM is "dumb".
[[nodiscard]] Terminal standard_output();

/// "14:02:31" of today, "2026-11-16 14:02:31" else; local time.
[[nodiscard]] std::string clock_text(TimePoint time, TimePoint now);

/// "3 d 4 h", "2 h 13 min", "4 min", "12 s".
[[nodiscard]] std::string span_text(Seconds span);

}  // namespace flex
