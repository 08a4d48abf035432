// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/precheck.h"

#include "lib/config/tree.h"

#include <fmt/format.h>

namespace flex {

namespace {

/// What may follow a first byte: how many bytes in all, and the limits of the second one, which
/// rule out overlong forms, surrogates and what lies above U+10FFFF.
struct Utf8Row {
  unsigned first = 0;
  unsigned last = 0;
  std::size_t size = 0;
  unsigned second_least = 0x80;
  unsigned second_most = 0xBF;
};

constexpr Utf8Row kUtf8[] = {
    {.first = 0x00, .last = 0x7F, .size = 1},
    {.first = 0xC2, .last = 0xDF, .size = 2},
    {.first = 0xE0, .last = 0xE0, .size = 3, .second_least = 0xA0},
    {.first = 0xE1, .last = 0xEC, .size = 3},
    {.first = 0xED, .last = 0xED, .size = 3, .second_most = 0x9F},
    {.first = 0xEE, .last = 0xEF, .size = 3},
    {.first = 0xF0, .last = 0xF0, .size = 4, .second_least = 0x90},
    {.first = 0xF1, .last = 0xF3, .size = 4},
    {.first = 0xF4, .last = 0xF4, .size = 4, .second_most = 0x8F},
};

/// How many bytes the UTF-8 character at the front has; 0: none that is valid.
std::size_t utf8_size(std::string_view text) {
  const auto byte = [text](std::size_t i) -> unsigned {
    return static_cast<unsigned char>(text[i]);
  };
  for (const Utf8Row& row : kUtf8) {
    if (byte(0) < row.first || byte(0) > row.last) continue;
    if (text.size() < row.size) return 0;
    if (row.size > 1 && (byte(1) < row.second_least || byte(1) > row.second_most)) return 0;
    for (std::size_t i = 2; i < row.size; ++i)
      if ((byte(i) & 0xC0U) != 0x80U) return 0;
    return row.size;
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
