// SPDX-License-Identifier: GPL-2.0-or-later
// How people name a job (pure).
#pragma once

#include "lib/core/domain.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace flex {

/// "12", "12_3" (a task of an array) or "12+1" (a part of a heterogeneous job), as squeue has them.
struct JobName {
  enum class Kind { Job, Task, Part };

  Kind kind = Kind::Job;
  std::uint32_t whole = 0;
  std::uint32_t number = 0;  ///< of the task or part

  [[nodiscard]] bool is(const Job& job) const;
};

/// Nothing for anything else; there is no job 0.
[[nodiscard]] std::optional<JobName> parse_job_name(std::string_view text);

}  // namespace flex
