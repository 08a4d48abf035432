// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/release.h"

#include "lib/slurm/compat.h"

#include <fmt/format.h>

#include <charconv>

namespace flex {

Result<SlurmRelease> parse_slurm_release(std::string_view text) {
  const Error bad{ErrorKind::Invalid, fmt::format("'{}' is no release of Slurm: 22.05", text)};
  const char* const end = text.data() + text.size();
  SlurmRelease release;
  const auto year = std::from_chars(text.data(), end, release.year);
  if (year.ec != std::errc{} || year.ptr == end || *year.ptr != '.') return bad;
  const auto month = std::from_chars(year.ptr + 1, end, release.month);
  const bool is_ended = month.ptr == end || *month.ptr == '.';
  constexpr int kMonths = 12;
  if (month.ec != std::errc{} || !is_ended || release.year < 1 || release.month < 1 ||
      release.month > kMonths)
    return bad;
  return release;
}

std::string to_string(const SlurmRelease& release) {
  return fmt::format("{:02}.{:02}", release.year, release.month);
}

SlurmRelease library_release() {
  return {.year = slurm::kReleaseYear, .month = slurm::kReleaseMonth};
}

}  // namespace flex
