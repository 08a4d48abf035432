// SPDX-License-Identifier: GPL-2.0-or-later
// Findings for people and for programs (pure).
#pragma once

#include "ctl/doctor/facts.h"
#include "ctl/doctor/finding.h"
#include "ctl/terminal.h"

#include <string>

namespace flex::doctor {

/// Errors first. Notes only with hints; else they are counted.
[[nodiscard]] std::string to_text(const Facts& facts,
                                  const Findings& findings,
                                  const Terminal& terminal,
                                  bool has_hints);

[[nodiscard]] std::string to_json_text(const Facts& facts, const Findings& findings);

}  // namespace flex::doctor
