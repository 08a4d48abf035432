// SPDX-License-Identifier: GPL-2.0-or-later
// The `filter` expressions of list calls, as we and gcloud write them (pure).
#pragma once

#include "emulator/json.h"
#include "lib/core/result.h"

#include <regex>
#include <string>
#include <vector>

namespace flex::emulator {

struct Condition {
  std::string field{};  ///< "name", "scheduling.preemptible"
  std::string value{};
  enum class Kind { Equal, NotEqual, Match, NotMatch, Has, Less, LessEqual, Greater, GreaterEqual };
  Kind kind = Kind::Equal;
  std::regex pattern{};
  bool is_negated = false;
};

/// Any of the lists inside, each with all of its conditions true: (a AND b) OR …
struct Filter {
  std::vector<std::vector<Condition>> any{};
};

/// `name eq "regex"`, `name ne x`, `name = x`, `name != x`, `name:foo*`, `size > 3`, in brackets or
/// not, next to each other or with AND; OR between groups. Empty: everything.
[[nodiscard]] Result<Filter> parse_filter(const std::string& text);

[[nodiscard]] bool matches(const Filter& filter, const Json& item);

}  // namespace flex::emulator
