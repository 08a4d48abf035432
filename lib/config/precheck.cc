// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/precheck.h"

#include "lib/config/tree.h"

#include <fmt/format.h>

namespace flex {

namespace {

/// How many bytes the UTF-8 character at the front has; 0: none that is valid.
std::size_t utf8_size(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&byte](std::size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

/// The first bad character of a line; true if there is none.
bool check_line(std::string_view line, int number, Problems& problems) {
  int column = 1;
  for (std::size_t i = 0; i < line.size(); ++column) {
    const Mark mark{number, column};
    const std::size_t size = utf8_size(line.substr(i));
    if (size == 0) {
      problems.add(mark,
                   fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(line[i])),
                   "save the file as UTF-8");
      return false;
    }
    if (is_control(line[i]) && line[i] != '\t') {
      problems.add(mark,
                   fmt::format("control character 0x{:02x}", static_cast<unsigned char>(line[i])),
                   "remove it");
      return false;
    }
    i += size;
  }
  const std::size_t start = line.find_first_not_of(" \t");
  const std::size_t tab = line.substr(0, start).find('\t');
  if (start == std::string_view::npos || line[start] == '#' || tab == std::string_view::npos)
    return true;
  problems.add(
      {number, static_cast<int>(tab) + 1}, "a tab in the indentation", "YAML wants spaces there");
  return false;
}

}  // namespace

bool precheck(std::string_view text, Problems& problems) {
  if (text.size() > kMaxConfigSize) {
    problems.add({}, "the file is larger than 1 MiB", "is it a flex-start.yaml?");
    return false;
  }
  bool is_good = true;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    is_good = check_line(line, number, problems) && is_good;
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
  }
  return is_good;
}

}  // namespace flex
