// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/duration.h"

#include "lib/core/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <vector>

namespace flex {

namespace {

constexpr std::int64_t kLongest = 10LL * 366 * 86400;

Error bad(std::string_view text, std::string_view why) {
  constexpr std::size_t kShown = 40;
  const std::string shown = shortened(text, kShown);
  return {ErrorKind::Invalid,
          fmt::format(
              "'{}' is not a duration: {} (write 3600, 90m, 12h, 7d or D-HH:MM:SS)", shown, why),
          "BAD_DURATION"};
}

/// Digits only; nothing where the text is empty, has anything else in it or is too long to be
/// sensible.
std::optional<std::int64_t> number(std::string_view text) {
  if (text.empty() || text.size() > 12) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || text.front() == '-')
    return std::nullopt;
  return value;
}

std::int64_t unit_seconds(char unit) {
  switch (unit) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86400;
    default:
      return 0;
  }
}

/// "1d12h", "90m", "604800s": each unit once, largest first.
Result<Seconds> parse_units(std::string_view text) {
  std::int64_t total = 0;
  std::int64_t last_unit = INT64_MAX;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t at = rest.find_first_not_of("0123456789");
    if (at == std::string_view::npos) return bad(text, "a number without a unit");
    const auto value = number(rest.substr(0, at));
    const std::int64_t unit = unit_seconds(rest[at]);
    if (!value) return bad(text, "a unit without a number, or a number out of range");
    if (unit == 0) return bad(text, "units are s, m, h and d");
    if (unit >= last_unit) return bad(text, "units go from large to small, each once");
    last_unit = unit;
    if (*value > kLongest / unit) return bad(text, "longer than ten years");
    total += *value * unit;
    rest.remove_prefix(at + 1);
  }
  if (total > kLongest) return bad(text, "longer than ten years");
  return Seconds{total};
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Slurm's spellings with a colon or a dash in them.
Result<Seconds> parse_slurm(std::string_view text) {
  std::int64_t days = 0;
  std::string_view rest = text;
  const std::size_t dash = text.find('-');
  const bool has_days = dash != std::string_view::npos;
  if (has_days) {
    const auto value = number(text.substr(0, dash));
    if (!value || *value > 3660) return bad(text, "the days before '-' are not a sensible number");
    days = *value;
    rest = text.substr(dash + 1);
  }
  std::vector<std::int64_t> fields;
  for (const std::string_view part : split(rest, ':')) {
    const auto value = number(part);
    if (!value) return bad(text, "an empty or bad field");
    fields.push_back(*value);
  }
  if (fields.size() > 3) return bad(text, "too many ':'");
  // With days the first field is hours; without, two fields are MM:SS and three HH:MM:SS.
  std::int64_t hours = 0;
  std::int64_t minutes = 0;
  std::int64_t seconds = 0;
  if (has_days || fields.size() == 3) {
    hours = fields[0];
    if (fields.size() > 1) minutes = fields[1];
    if (fields.size() > 2) seconds = fields[2];
  } else {
    minutes = fields[0];
    seconds = fields[1];
  }
  if (seconds > 59) return bad(text, "seconds above 59");
  if (fields.size() + (has_days ? 1U : 0U) >= 3 && minutes > 59)
    return bad(text, "minutes above 59");
  if (has_days && hours > 23) return bad(text, "hours above 23 after the days");
  if (hours > kLongest / 3600 || minutes > kLongest / 60) return bad(text, "longer than ten years");
  const std::int64_t total = days * 86400 + hours * 3600 + minutes * 60 + seconds;
  if (total > kLongest) return bad(text, "longer than ten years");
  return Seconds{total};
}

}  // namespace

Result<Seconds> parse_duration(std::string_view text) {
  if (text.empty()) return bad(text, "it is empty");
  if (text.find_first_of("-:") != std::string_view::npos) {
    if (text.front() == '-') return bad(text, "it is negative");
    return parse_slurm(text);
  }
  if (text.find_first_not_of("0123456789") == std::string_view::npos) {
    const auto value = number(text);
    if (!value || *value > kLongest) return bad(text, "longer than ten years");
    return Seconds{*value};
  }
  return parse_units(text);
}

Result<Seconds> parse_job_time(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos)
    return parse_duration(text);
  const auto minutes = number(text);
  if (!minutes || *minutes > kLongest / 60) return bad(text, "longer than ten years");
  return Seconds{*minutes * 60};
}

std::string format_duration(Seconds value) {
  const std::int64_t seconds = value.count();
  if (seconds != 0 && seconds % 86400 == 0) return fmt::format("{}d", seconds / 86400);
  if (seconds != 0 && seconds % 3600 == 0) return fmt::format("{}h", seconds / 3600);
  if (seconds != 0 && seconds % 60 == 0) return fmt::format("{}m", seconds / 60);
  return fmt::format("{}s", seconds);
}

std::string format_slurm_time(Seconds value) {
  const std::int64_t seconds = value.count();
  const std::int64_t days = seconds / 86400;
  const std::string clock =
      fmt::format("{:02}:{:02}:{:02}", seconds % 86400 / 3600, seconds % 3600 / 60, seconds % 60);
  return days > 0 ? fmt::format("{}-{}", days, clock) : clock;
}

std::string format_time(TimePoint time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                     static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()),
                     clock.hours().count(),
                     clock.minutes().count(),
                     clock.seconds().count());
}

namespace {

/// The `size` digits at `at`, or nothing.
std::optional<int> digits(std::string_view text, std::size_t at, std::size_t size) {
  if (at + size > text.size()) return std::nullopt;
  const auto value = number(text.substr(at, size));
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

/// The offset after the seconds and their fraction: "Z", "+01:00"; nothing if it is neither.
std::optional<Seconds> offset(std::string_view zone) {
  if (zone == "Z" || zone == "z") return Seconds{0};
  if (zone.size() != 6 || zone[3] != ':' || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  const auto hours = digits(zone, 1, 2);
  const auto minutes = digits(zone, 4, 2);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const Seconds size = std::chrono::hours{*hours} + std::chrono::minutes{*minutes};
  return zone[0] == '-' ? -size : size;
}

}  // namespace

Result<TimePoint> parse_time(std::string_view text) {
  const Error error{ErrorKind::Invalid,
                    fmt::format("'{}' is not an RFC 3339 time", text.substr(0, 40)),
                    "BAD_TIME"};
  const auto year = digits(text, 0, 4);
  const auto month = digits(text, 5, 2);
  const auto day = digits(text, 8, 2);
  const auto hour = digits(text, 11, 2);
  const auto minute = digits(text, 14, 2);
  const auto second = digits(text, 17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return error;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != 't') || text[13] != ':' ||
      text[16] != ':') {
    return error;
  }
  std::string_view zone = text.substr(19);
  if (!zone.empty() && zone.front() == '.') {
    const std::size_t end = zone.find_first_not_of("0123456789", 1);
    if (end == std::string_view::npos || end == 1) return error;
    zone.remove_prefix(end);
  }
  const auto shift = offset(zone);
  const std::chrono::year_month_day date{std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  if (!shift || !date.ok() || *hour > 23 || *minute > 59 || *second > 60) return error;
  return TimePoint{std::chrono::sys_days{date}} + std::chrono::hours{*hour} +
         std::chrono::minutes{*minute} + Seconds{*second} - *shift;
}

}  // namespace flex
