// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/import/formats.h"

#include "lib/config/load.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

/// JSON may be indented with tabs, which YAML forbids; inside its texts there are none.
std::string without_tabs(std::string_view text) {
  std::string plain(text);
  const std::size_t first = plain.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && (plain[first] == '{' || plain[first] == '['))
    std::replace(plain.begin(), plain.end(), '\t', ' ');
  return plain;
}

/// Terraform's own language, which is neither JSON nor YAML: "nodeset = [".
bool looks_like_hcl(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos || line[start] == '#') continue;
    const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", start);
    if (end == std::string_view::npos || end == start) return false;
    const std::size_t sign = line.find_first_not_of(' ', end);
    return sign != std::string_view::npos && line.substr(sign).starts_with("= ");
  }
  return false;
}

void check_asked_for(const ImportOptions& options, Import& import) {
  for (const std::string& name : options.nodesets) {
    const auto& nodesets = import.draft.nodesets;
    const bool is_there = std::any_of(nodesets.begin(), nodesets.end(), [&](const auto& nodeset) {
      return nodeset.name == name;
    });
    if (!is_there)
      import.problems.add({}, fmt::format("no Flex Start nodeset {} in this file", show(name)));
  }
}

/// What we write must be what we read.
void check_result(const std::string& yaml, Imported& imported) {
  const LoadedConfig loaded = parse_config(yaml, "flex-start.yaml");
  Problems problems{imported.report.file};
  for (const Problem& problem : loaded.problems)
    problems.add({}, "what comes of it is not good: " + problem.what, problem.hint);
  imported.problems = problems.take();
  for (const std::string& warning : loaded.config.warnings)
    imported.report.entries.push_back({Fate::Assumed, {}, {}, {}, warning});
}

}  // namespace

bool is_asked_for(const ImportOptions& options, std::string_view nodeset) {
  return options.nodesets.empty() ||
         std::find(options.nodesets.begin(), options.nodesets.end(), nodeset) !=
             options.nodesets.end();
}

Imported import_text(std::string_view text,
                     const std::string& file,
                     ReadFormat read,
                     const ImportOptions& options) {
  Import import{file};
  if (looks_like_hcl(text)) {
    import.problems.add(
        {1, 1}, "this is Terraform's own language", "give it as JSON (.tfvars.json) or YAML");
  } else if (const auto root = parse_tree(without_tabs(text), import.problems)) {
    read(*root, options, import);
    if (import.problems.empty() && import.draft.nodesets.empty() && options.nodesets.empty())
      import.problems.add(
          {}, "no Flex Start nodeset in this file", "the report says what is in it");
    check_asked_for(options, import);
  }
  if (import.problems.empty()) settle_region(import);
  Imported imported{.report = std::move(import.report)};
  imported.problems = import.problems.take();
  if (imported.problems.empty()) {
    imported.yaml = render(import.draft, file);
    check_result(imported.yaml, imported);
    if (!imported.problems.empty()) imported.yaml.clear();
  }
  imported.report.sort();
  return imported;
}

}  // namespace flex
