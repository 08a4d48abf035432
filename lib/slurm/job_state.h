// SPDX-License-Identifier: GPL-2.0-or-later
// A job's state in Slurm's words (pure).
#pragma once

#include "lib/core/domain.h"

#include <string_view>

namespace flex {

/// "PENDING", "RUNNING", "COMPLETED", …: the base state, as sacct has it.
[[nodiscard]] std::string_view job_state_text(const Job& job);

}  // namespace flex
