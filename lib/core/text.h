// SPDX-License-Identifier: GPL-2.0-or-later
// Texts of unknown length in messages (pure, small: also for the plugin).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flex {

/// Text that somebody else chose, fit for a terminal: control characters (those of C1, too), what
/// is no UTF-8, and what turns the direction of writing or breaks a line are `instead`, each.
[[nodiscard]] std::string printable(std::string_view text, char instead = ' ');

/// At most `limit` bytes of its beginning, not ending within a UTF-8 character.
[[nodiscard]] std::string_view beginning_of(std::string_view text, std::size_t limit);

/// The same, and "…" where that is not all of it.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

}  // namespace flex
