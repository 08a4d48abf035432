// SPDX-License-Identifier: GPL-2.0-or-later
// What became of each setting of a neighbour's file (pure).
#pragma once

#include "lib/config/problems.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

enum class Fate {
  Mapped,   ///< written into flex-start.yaml
  Assumed,  ///< not said in the file, or only partly: somebody should look at it
  NoEqual,  ///< has no equivalent; the note says where it belongs, if anywhere
  LeftOut,  ///< a whole nodeset that is not one for Flex Start
};

[[nodiscard]] std::string_view to_string(Fate fate);

/// One setting.
struct ReportEntry {
  Fate fate = Fate::Mapped;
  Mark mark{};         ///< where it was written; line 0: nowhere
  std::string from{};  ///< its name in the file: "dws_flex.max_run_duration"
  std::string to{};    ///< "nodesets.a3u.dws_flex.max_run_duration: 7d"; empty: nothing
  std::string note{};
};

struct Report {
  std::string file{};
  std::vector<ReportEntry> entries{};

  /// In the file's order, what has no place last.
  void sort();

  /// A line for each entry, and a count at the end.
  [[nodiscard]] std::string text() const;
};

/// The report and what was wrong with the file, as one JSON object.
[[nodiscard]] std::string to_json(const Report& report, const std::vector<Problem>& problems);

}  // namespace flex
