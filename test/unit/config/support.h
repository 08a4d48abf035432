// SPDX-License-Identifier: GPL-2.0-or-later
// Small helpers of the config tests.
#pragma once

#include "lib/config/load.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace flex::test {

/// A path in the source tree.
inline std::filesystem::path source_path(const std::string& path) {
  return std::filesystem::path(FLEX_SOURCE_DIR) / path;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The problems of a text, without the file's name: "3:5: unknown key …".
inline std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const Problem& problem : parse_config(text, "f").problems) {
    const std::string line = problem.text();
    lines.push_back(line.substr(problem.line > 0 ? 2 : 3));
  }
  return lines;
}

/// One nodeset 'a' with four nodes and all that is required; `more` is lines of the nodeset,
/// indented by four.
inline std::string minimal(const std::string& more = {}, const std::string& top = {}) {
  return top +
         "region: us-central1\nnodesets:\n  a:\n    nodes: a-[0-3]\n    instance_template: t\n" +
         more;
}

}  // namespace flex::test
