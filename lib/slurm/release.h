// SPDX-License-Identifier: GPL-2.0-or-later
// Which release of Slurm something is for.
#pragma once

#include "lib/core/result.h"

#include <compare>
#include <string>
#include <string_view>

namespace flex {

struct SlurmRelease {
  int year = 0;
  int month = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the defaulted <=> for a 0
  friend auto operator<=>(const SlurmRelease&, const SlurmRelease&) = default;
};

/// "22.05", "24.11.5"; Invalid for anything else.
[[nodiscard]] Result<SlurmRelease> parse_slurm_release(std::string_view text);

/// "22.05".
[[nodiscard]] std::string to_string(const SlurmRelease& release);

/// That of the libslurm which this program runs with.
[[nodiscard]] SlurmRelease library_release();

}  // namespace flex
