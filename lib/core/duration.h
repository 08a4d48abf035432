// SPDX-License-Identifier: GPL-2.0-or-later
// Durations as people write them (pure).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>

namespace flex {

/// `3600`, `604800s`, `90m`, `12h`, `7d`, `1d12h`, Slurm's `D-HH:MM:SS`, `D-HH:MM`, `D-HH`,
/// `HH:MM:SS`, `MM:SS`. A bare number is seconds. Whole, not negative, at most 10 years; anything
/// else is Invalid with the reason. Never truncated, never overflowed.
[[nodiscard]] Result<Seconds> parse_duration(std::string_view text);

/// As in `sbatch --time`: a bare number is minutes; `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`,
/// `D-HH:MM:SS`, and with a unit as above. The same limits.
[[nodiscard]] Result<Seconds> parse_job_time(std::string_view text);

/// The shortest exact spelling in one unit: "7d", "90m", "15300s".
[[nodiscard]] std::string format_duration(Seconds value);

/// As Slurm writes it: "4:00:00", "7-00:00:00".
[[nodiscard]] std::string format_slurm_time(Seconds value);

/// UTC, "2026-11-16T18:35:00Z".
[[nodiscard]] std::string format_time(TimePoint time);

/// RFC 3339 with any offset and fraction, as Google writes it.
[[nodiscard]] Result<TimePoint> parse_time(std::string_view text);

}  // namespace flex
