// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/terminal.h"

#include "lib/core/program.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <sys/ioctl.h>
#include <unistd.h>

namespace flex {

namespace {

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::Plain:
      return "";
    case Colour::Bold:
      return "\033[1m";
    case Colour::Dim:
      return "\033[2m";
    case Colour::Red:
      return "\033[31m";
    case Colour::Green:
      return "\033[32m";
    case Colour::Yellow:
      return "\033[33m";
    case Colour::Blue:
      return "\033[34m";
  }
  return "";
}

std::tm to_local(TimePoint time) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  return parts;
}

}  // namespace

std::string Terminal::paint(Colour colour, std::string_view text) const {
  if (!has_colour || colour == Colour::Plain) return std::string(text);
  return fmt::format("{}{}\033[0m", code_of(colour), text);
}

Terminal standard_output() {
  Terminal out;
  out.is_terminal = ::isatty(STDOUT_FILENO) == 1;
  if (!out.is_terminal) return out;
  out.has_colour = environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    out.width = size.ws_col;
    out.height = size.ws_row;
  }
  return out;
}

std::string clock_text(TimePoint time, TimePoint now) {
  if (time == TimePoint{}) return "-";
  const std::tm then = to_local(time);
  const std::tm today = to_local(now);
  const bool is_today = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  return is_today ? fmt::format("{:%H:%M:%S}", then) : fmt::format("{:%Y-%m-%d %H:%M:%S}", then);
}

std::string span_text(Seconds span) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t s = span.count();
  if (s < 0) return "-" + span_text(-span);
  if (s < kMinute) return fmt::format("{} s", s);
  if (s < kHour) return fmt::format("{} min", s / kMinute);
  const bool is_days = s >= kDay;
  const std::int64_t big = is_days ? kDay : kHour;
  const std::int64_t small = is_days ? kHour : kMinute;
  const std::string first = fmt::format("{} {}", s / big, is_days ? "d" : "h");
  const std::int64_t rest = s % big / small;
  return rest == 0 ? first : fmt::format("{} {} {}", first, rest, is_days ? "h" : "min");
}

}  // namespace flex
