// SPDX-License-Identifier: GPL-2.0-or-later
// flex-start.yaml to Config. The one place that uses yaml-cpp; no exception leaves it.
#pragma once

#include "lib/config/config.h"
#include "lib/core/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace flex {

/// One thing wrong with the file.
struct Problem {
  std::string file{};
  int line = 0;  ///< 1-based; 0: the file as a whole
  int column = 0;
  std::string what{};
  std::string hint{};  ///< what to write instead; may be empty

  /// "flex-start.yaml:12:5: unknown key 'zone' (did you mean 'zones'?)"
  [[nodiscard]] std::string text() const;
};

/// A config, or all that is wrong with the file, in the file's order.
struct LoadedConfig {
  Config config{};
  std::vector<Problem> problems{};

  [[nodiscard]] bool ok() const { return problems.empty(); }
};

/// Reads and checks the file: shape (load.cc), then what the fields mean together (validate.cc).
/// Refuses a file that others than root, the current user and (for root) SlurmUser may write.
[[nodiscard]] LoadedConfig load_config(const std::string& path,
                                       const std::optional<uid_t>& slurm_user = {});

/// The same for a text; `name` stands for the file in messages. Pure.
[[nodiscard]] LoadedConfig parse_config(std::string_view text, const std::string& name);

}  // namespace flex
