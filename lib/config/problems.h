// SPDX-License-Identifier: GPL-2.0-or-later
// Collects what is wrong with a file, each with its place (pure).
#pragma once

#include "lib/config/load.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// A place in the file, 1-based; line 0: the file as a whole.
struct Mark {
  int line = 0;
  int column = 0;
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

/// What a user wrote, in quotes and fit for one line of a log: cut when long, control characters
/// escaped.
[[nodiscard]] std::string show(std::string_view text);

/// A byte that has no place in a line of text.
[[nodiscard]] constexpr bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '\x7f';
}

class Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  void add(Mark mark, std::string what, std::string hint = {});

  [[nodiscard]] bool empty() const { return found_.empty(); }

  /// In the file's order, each once: what is wrong in `defaults` is wrong in every nodeset. A
  /// hopeless file gives its first hundreds and a count.
  [[nodiscard]] std::vector<Problem> take();

 private:
  std::string file_;
  std::vector<Problem> found_;
};

}  // namespace flex
