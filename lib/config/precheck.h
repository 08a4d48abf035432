// SPDX-License-Identifier: GPL-2.0-or-later
// What is checked in a text before a YAML parser sees it (pure).
#pragma once

#include "lib/config/problems.h"

#include <string_view>

namespace flex {

/// True if the text is UTF-8 of a sensible size without control characters and without tabs in
/// its indentation; says otherwise what is wrong.
[[nodiscard]] bool precheck(std::string_view text, Problems& problems);

}  // namespace flex
