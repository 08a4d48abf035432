// SPDX-License-Identifier: GPL-2.0-or-later
// What the doctor finds: one thing that is wrong, why it matters, and the line to change.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flex::doctor {

enum class Severity {
  Note,     ///< cannot be checked from here, or is a matter of taste: no reason to worry
  Warning,  ///< works, but not as well as it could
  Error,    ///< jobs will fail, wait for ever, or VMs will be paid for in vain
};

[[nodiscard]] std::string_view to_string(Severity severity);

/// Where to change something; line 0: the file as a whole, no file: nowhere in a file.
struct Place {
  std::string file{};
  int line = 0;
  int column = 0;

  /// "slurm.conf:12", "flex-start.yaml:3:7", "slurm.conf", "".
  [[nodiscard]] std::string text() const;
};

struct Finding {
  std::string id{};  ///< stable, "topic.what": see flexctl(8)
  Severity severity = Severity::Error;
  std::string what{};
  std::string why{};
  std::string fix{};  ///< a sentence, or the text to write at `place`
  Place place{};
  std::vector<std::string> hints{};  ///< whole lines and commands, for --fix-hints
};

using Findings = std::vector<Finding>;

/// 0: nothing, or notes only; 1: warnings only; 2: errors.
[[nodiscard]] int exit_code(const Findings& findings);

}  // namespace flex::doctor
