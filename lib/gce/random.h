// SPDX-License-Identifier: GPL-2.0-or-later
// Chance from the kernel.
#pragma once

#include <string>

namespace flex {

/// A fresh version 4 UUID: "f81d4fae-7dec-41d0-a765-00a0c91e6bf6".
[[nodiscard]] std::string random_uuid();

/// Uniform in [0, 1).
[[nodiscard]] double random_unit();

}  // namespace flex
