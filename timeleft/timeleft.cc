// SPDX-License-Identifier: GPL-2.0-or-later
#include "timeleft/timeleft.h"

#include "lib/core/duration.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace flex {

Result<TimePoint> parse_end(std::string_view text) {
  if (text.empty()) {
    return Error{ErrorKind::NotFound,
                 "SLURM_FLEX_END_TIME is not set: nobody knows when the VMs end (not a job on Flex "
                 "Start VMs, or "
                 "its plugin is not installed)",
                 "NO_END"};
  }
  // Enough for the next 30,000 years, and nothing overflows.
  constexpr std::size_t kMostDigits = 12;
  std::int64_t seconds = 0;
  const bool is_number =
      text.find_first_not_of("0123456789") == std::string_view::npos &&
      text.size() <= kMostDigits &&
      std::from_chars(text.data(), text.data() + text.size(), seconds).ec == std::errc{};
  if (!is_number) {
    return Error{
        ErrorKind::Invalid,
        "SLURM_FLEX_END_TIME is not a number of seconds since 1970: nobody knows when the VMs end",
        "BAD_END"};
  }
  return TimePoint{Seconds{seconds}};
}

Result<Seconds> parse_min(std::string_view text) {
  const auto time = parse_job_time(text);
  if (time) return *time;
  return Error{
      ErrorKind::Invalid, "--min: not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS", "BAD_MIN"};
}

Seconds time_left(TimePoint end, TimePoint now) {
  return std::max(Seconds{0}, end - now);
}

bool is_enough(Seconds left, Seconds least) {
  return left > Seconds{0} && left >= least;
}

std::string format_left(Seconds left) {
  const std::string text = format_slurm_time(left);
  // One digit is enough for the hours.
  return text.front() == '0' ? text.substr(1) : text;
}

}  // namespace flex
