// SPDX-License-Identifier: GPL-2.0-or-later
// What would be asked of Google, in words and as JSON (pure).
#pragma once

#include "lib/config/config.h"
#include "resume/demand.h"
#include "resume/plan.h"

#include <string>
#include <vector>

namespace flex {

/// A job that there is not yet: its requests and groups are shown as JOB's.
inline constexpr JobId kMadeUpJob = 4'294'900'000;

struct PlanStory {
  const Config& config;
  Demand demand{};
  ResumePlan plan{};
  std::vector<std::string> notes{};  ///< what else happens: who waits before, what is paused
};

[[nodiscard]] std::vector<std::string> plan_lines(const PlanStory& story);
[[nodiscard]] std::string plan_json(const PlanStory& story);

/// Nodes cannot be asked for at all, or only later.
[[nodiscard]] bool has_refusals(const PlanStory& story);

}  // namespace flex
