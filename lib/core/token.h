// SPDX-License-Identifier: GPL-2.0-or-later
// "flex(key=value,…)": our word in a text that belongs to somebody else, a job's comment or a
// node's extra (pure, small: also for the plugin).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

/// Where it is in the text, and what it says.
struct Token {
  std::size_t begin = 0;
  std::size_t size = 0;
  std::vector<std::pair<std::string_view, std::string_view>> fields{};  ///< they borrow the text

  /// Empty if there is no such field; of several the last.
  [[nodiscard]] std::string_view find(std::string_view key) const;
};

/// All of them, in order. "flex(" is only a token at the beginning of a word, and up to the next
/// ")"; one without an end, or with another "(" before it, is none. A field without "=" has an
/// empty value.
[[nodiscard]] std::vector<Token> find_tokens(std::string_view text);

/// "flex(" + "key=value,…" + ")"; fields without a value are left out.
[[nodiscard]] std::string write_token(
    const std::vector<std::pair<std::string_view, std::string>>& fields);

}  // namespace flex
