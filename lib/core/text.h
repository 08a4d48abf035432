// SPDX-License-Identifier: GPL-2.0-or-later
// Texts of unknown length in messages (pure, small: also for the plugin).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace flex {

/// At most `limit` bytes of its beginning, not ending within a UTF-8 character.
[[nodiscard]] std::string_view beginning_of(std::string_view text, std::size_t limit);

/// The same, and "…" where that is not all of it.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t limit);

}  // namespace flex
