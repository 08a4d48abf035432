// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/doctor/finding.h"

#include "ctl/doctor/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <sys/stat.h>

namespace flex::doctor {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::Note:
      return "info";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  return "error";
}

std::string Place::text() const {
  if (file.empty() || line == 0) return file;
  return column == 0 ? fmt::format("{}:{}", file, line)
                     : fmt::format("{}:{}:{}", file, line, column);
}

int exit_code(const Findings& findings) {
  const auto has = [&](Severity severity) {
    return std::any_of(findings.begin(), findings.end(), [severity](const Finding& finding) {
      return finding.severity == severity;
    });
  };
  if (has(Severity::Error)) return 2;
  return has(Severity::Warning) ? 1 : 0;
}

bool SlurmFacts::user_may(const FileFacts& looked_at, mode_t bits) const {
  if (!slurm_user) return true;
  constexpr mode_t kAnyExecute = S_IXUSR | S_IXGRP | S_IXOTH;
  if (*slurm_user == 0)
    return (bits & S_IXOTH) == 0 || looked_at.is_directory || (looked_at.mode & kAnyExecute) != 0;
  const bool is_in_group =
      std::find(slurm_user_groups.begin(), slurm_user_groups.end(), looked_at.group) !=
      slurm_user_groups.end();
  constexpr unsigned kOwner = 6;
  constexpr unsigned kGroup = 3;
  const unsigned shift = looked_at.owner == *slurm_user ? kOwner : is_in_group ? kGroup : 0;
  return ((looked_at.mode >> shift) & bits) == bits;
}

int YamlFacts::line_of(std::string key) const {
  while (true) {
    const auto found = lines.find(key);
    if (found != lines.end()) return found->second;
    const std::size_t dot = key.rfind('.');
    if (dot == std::string::npos) return 0;
    key.erase(dot);
  }
}

}  // namespace flex::doctor
