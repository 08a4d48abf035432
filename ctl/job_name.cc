// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/job_name.h"

#include <charconv>

namespace flex {

namespace {

std::optional<std::uint32_t> to_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

bool JobName::is(const Job& job) const {
  switch (kind) {
    case Kind::Job:
      return job.id == whole;
    case Kind::Task:
      return job.array_job_id == whole && job.array_task == number;
    case Kind::Part:
      // Its parts are numbered in a row.
      return job.het_job_id == whole && job.id == whole + number;
  }
  return false;
}

std::optional<JobName> parse_job_name(std::string_view text) {
  const std::size_t sign = text.find_first_of("_+");
  const auto whole = to_number(text.substr(0, sign));
  if (!whole || *whole == 0) return std::nullopt;
  if (sign == std::string_view::npos)
    return JobName{.kind = JobName::Kind::Job, .whole = *whole, .number = 0};
  const auto number = to_number(text.substr(sign + 1));
  if (!number) return std::nullopt;
  return JobName{.kind = text[sign] == '_' ? JobName::Kind::Task : JobName::Kind::Part,
                 .whole = *whole,
                 .number = *number};
}

}  // namespace flex
