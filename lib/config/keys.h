// SPDX-License-Identifier: GPL-2.0-or-later
// The nearest known word to a mistyped one (pure).
#pragma once

#include <string_view>
#include <vector>

namespace flex {

/// The one of `words` that needs the fewest single-letter changes, if a typing mistake is a
/// plausible explanation; else empty.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       const std::vector<std::string_view>& words);

}  // namespace flex
