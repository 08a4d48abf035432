// SPDX-License-Identifier: GPL-2.0-or-later
// Reads and writes times.
#include "emulator/clock.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>

namespace flex::emulator {

namespace {

std::string civil(std::int64_t epoch) {
  const auto seconds = static_cast<std::time_t>(epoch);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
                     parts.tm_year + 1900,
                     parts.tm_mon + 1,
                     parts.tm_mday,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec);
}

}  // namespace

double steady_wall() {
  using std::chrono::duration;
  using std::chrono::steady_clock;
  using std::chrono::system_clock;
  static const auto steady_base = steady_clock::now();
  static const double wall_base = duration<double>(system_clock::now().time_since_epoch()).count();
  return wall_base + duration<double>(steady_clock::now() - steady_base).count();
}

std::string format_stamp(double epoch) {
  constexpr std::int64_t kPacific = -8LL * 3600;
  const auto millis = static_cast<std::int64_t>(std::llround(epoch * 1000.0));
  return fmt::format("{}.{:03}-08:00", civil(millis / 1000 + kPacific), millis % 1000);
}

std::string format_utc(double epoch) {
  return civil(static_cast<std::int64_t>(std::llround(epoch))) + "Z";
}

std::string format_http_date(double epoch) {
  constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths{
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto seconds = static_cast<std::time_t>(epoch);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  // Not strftime: a locale would have other names.
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(parts.tm_wday)),
                     parts.tm_mday,
                     kMonths.at(static_cast<std::size_t>(parts.tm_mon)),
                     parts.tm_year + 1900,
                     parts.tm_hour,
                     parts.tm_min,
                     parts.tm_sec);
}

}  // namespace flex::emulator
