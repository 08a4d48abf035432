// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/doctor/finding.h"

#include "ctl/doctor/facts.h"

#include <fmt/format.h>

#include <algorithm>

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
