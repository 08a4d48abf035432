// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace flex {

std::string Problem::text() const {
  std::string text = line > 0 ? fmt::format("{}:{}:{}: {}", file, line, column, what)
                              : fmt::format("{}: {}", file, what);
  if (!hint.empty()) text += fmt::format(" ({})", hint);
  return text;
}

std::string show(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::size_t size = std::min(text.size(), kShown);
  // Never half a UTF-8 character.
  while (size < text.size() && size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80)
    --size;
  std::string shown = "'";
  for (const char c : text.substr(0, size)) {
    if (is_control(c)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      shown += c;
    }
  }
  if (size < text.size()) shown += "…";
  return shown + "'";
}

void Problems::add(Mark mark, std::string what, std::string hint) {
  found_.push_back({.file = file_,
                    .line = mark.line,
                    .column = mark.column,
                    .what = std::move(what),
                    .hint = std::move(hint)});
}

std::vector<Problem> Problems::take() {
  constexpr std::size_t kMost = 200;
  const auto place = [](const Problem& p) { return std::tie(p.line, p.column); };
  std::stable_sort(found_.begin(), found_.end(), [&](const Problem& a, const Problem& b) {
    return place(a) < place(b);
  });
  const auto same = [&](const Problem& a, const Problem& b) {
    return place(a) == place(b) && a.what == b.what;
  };
  found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
  if (found_.size() > kMost) {
    const std::size_t more = found_.size() - kMost;
    const Mark next{found_[kMost].line, found_[kMost].column};
    found_.resize(kMost);
    add(next, fmt::format("and {} more problems from here on", more));
  }
  return std::exchange(found_, {});
}

}  // namespace flex
