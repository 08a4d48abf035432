// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/table.h"

#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace flex {

namespace {

constexpr std::string_view kGap = "  ";

/// The first byte of a character of UTF-8, or ASCII.
bool begins_character(char c) {
  constexpr unsigned kMask = 0xC0;
  constexpr unsigned kContinuation = 0x80;
  return (static_cast<unsigned char>(c) & kMask) != kContinuation;
}

std::vector<std::size_t> column_widths(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i].text));
  }
  return widths;
}

std::string format_row(const Row& row,
                       const std::vector<std::size_t>& widths,
                       const Terminal& terminal) {
  std::string line;
  std::size_t used = 0;
  std::size_t owed = 0;  // spaces before the next text
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::size_t room = terminal.width > used + owed ? terminal.width - used - owed : 0;
    const std::string text = cut(row[i].text, room);
    const std::size_t width = width_of(text);
    if (width > 0) {
      line.append(owed, ' ');
      line += terminal.paint(row[i].colour, text);
      used += owed + width;
      owed = 0;
    }
    owed += widths[i] - std::min(widths[i], width) + kGap.size();
  }
  return line;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string cut(std::string_view text, std::size_t width) {
  if (width_of(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && ++seen == width) return std::string(text.substr(0, i)) + "…";
  }
  return std::string(text);
}

std::vector<std::string> format_table(const std::vector<Row>& rows, const Terminal& terminal) {
  const std::vector<std::size_t> widths = column_widths(rows);
  std::vector<std::string> lines;
  lines.reserve(rows.size());
  for (const Row& row : rows) lines.push_back(format_row(row, widths, terminal));
  return lines;
}

std::size_t table_width(const std::vector<Row>& rows) {
  const std::vector<std::size_t> widths = column_widths(rows);
  std::size_t widest = 0;
  for (const Row& row : rows) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].text.empty()) widest = std::max(widest, before + width_of(row[i].text));
      before += widths[i] + kGap.size();
    }
  }
  return widest;
}

std::string fit_nodes(const std::string& folded, std::size_t count, std::size_t width) {
  if (width_of(folded) <= width) return folded;
  const auto nodes = expand_hostlist(folded);
  if (!nodes || nodes->empty()) return cut(folded, width);
  const std::size_t all = std::max(count, nodes->size());
  const auto beginning = [&](std::size_t shown) {
    const auto end = nodes->begin() + static_cast<std::ptrdiff_t>(shown);
    return fmt::format("{}, and {} more", fold_hostlist({nodes->begin(), end}), all - shown);
  };
  // A list of more names is not shorter, give or take a bracket: halving finds how many fit.
  std::size_t fits = 1;
  std::size_t too_many = nodes->size();
  while (fits + 1 < too_many) {
    const std::size_t middle = fits + (too_many - fits) / 2;
    (width_of(beginning(middle)) <= width ? fits : too_many) = middle;
  }
  return cut(beginning(fits), width);
}

std::vector<std::size_t> share_lines(const std::vector<std::vector<std::size_t>>& wanted,
                                     std::size_t room) {
  std::vector<std::size_t> shares(wanted.size());
  room -= std::min(room, wanted.size());
  bool is_given = true;
  while (is_given) {
    is_given = false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (shares[i] == wanted[i].size() || wanted[i][shares[i]] > room) continue;
      room -= wanted[i][shares[i]++];
      is_given = true;
    }
  }
  return shares;
}

}  // namespace flex
