// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/keys.h"

#include <algorithm>
#include <numeric>

namespace flex {

namespace {

/// Levenshtein's distance, where '-' is as good as '_' and case does not count.
std::size_t distance(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    if (c == '-') return '_';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t change = diagonal + (plain(a[i]) == plain(b[j]) ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& words) {
  constexpr std::size_t kLongest = 40;
  if (word.empty() || word.size() > kLongest) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : words) {
    const std::size_t far = distance(word, candidate);
    if (far >= best_distance) continue;
    best = candidate;
    best_distance = far;
  }
  return best;
}

}  // namespace flex
