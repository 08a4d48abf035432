// SPDX-License-Identifier: GPL-2.0-or-later
// Which permissions a call needs (pure).
#pragma once

#include <set>
#include <string>

namespace flex::emulator {

/// The first permission of the call to this method that is among `denied`; empty: none.
[[nodiscard]] std::string denied_permission(const std::string& method,
                                            const std::set<std::string>& denied);

}  // namespace flex::emulator
