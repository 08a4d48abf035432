// SPDX-License-Identifier: GPL-2.0-or-later
// What flex-timeleft makes of SLURM_FLEX_END_TIME (pure).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>

namespace flex {

/// Seconds since 1970, as the plugin writes them; NotFound for an empty text, Invalid for any
/// other, with a sentence for the job's author.
[[nodiscard]] Result<TimePoint> parse_end(std::string_view text);

/// `--min`, as in `sbatch --time`: a bare number is minutes. Invalid with one sentence.
[[nodiscard]] Result<Seconds> parse_min(std::string_view text);

/// 0 once it is over, never less.
[[nodiscard]] Seconds time_left(TimePoint end, TimePoint now);

/// At least `least`, and in any case more than nothing.
[[nodiscard]] bool is_enough(Seconds left, Seconds least);

/// "2:13:05", "1-02:13:05", as Slurm writes it.
[[nodiscard]] std::string format_left(Seconds left);

}  // namespace flex
