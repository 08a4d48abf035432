// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as a duration and as a time: what is taken can be written and read again.
#include "lib/core/duration.h"
#include "test/fuzz/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto value = flex::parse_duration(text)) {
    check(value->count() >= 0, "a duration is not negative");
    check(*value <= std::chrono::days{3660}, "a duration is at most ten years");
    const auto again = flex::parse_duration(flex::format_duration(*value));
    check(again && *again == *value, "a formatted duration is the same duration");
    const auto slurm = flex::parse_duration(flex::format_slurm_time(*value));
    check(slurm && *slurm == *value, "a duration in Slurm's spelling is the same duration");
  }
  if (const auto time = flex::parse_time(text)) {
    using namespace std::chrono;
    // An offset can push the first and the last day out of the four-digit years.
    const auto year = year_month_day{floor<days>(*time)}.year();
    if (year < std::chrono::year{0} || year > std::chrono::year{9999}) return 0;
    const auto again = flex::parse_time(flex::format_time(*time));
    check(again && *again == *time, "a formatted time is the same time");
  }
  return 0;
}
