// SPDX-License-Identifier: GPL-2.0-or-later
// Rows of cells that fit a terminal (pure).
#pragma once

#include "ctl/terminal.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct Cell {
  std::string text{};
  Colour colour = Colour::Plain;
};

using Row = std::vector<Cell>;

/// How many columns a text takes; one for each character of UTF-8.
[[nodiscard]] std::size_t width_of(std::string_view text);

/// At most `width` columns of it, with "…" at the end where that is not all.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);

/// One line for each row: columns are aligned and two spaces apart, the last one ends at the
/// terminal's edge. Trailing spaces are left out.
[[nodiscard]] std::vector<std::string> format_table(const std::vector<Row>& rows,
                                                    const Terminal& terminal);

/// How many columns the widest of these lines would take.
[[nodiscard]] std::size_t table_width(const std::vector<Row>& rows);

/// A folded list of `count` nodes in at most `width` columns: where it is longer, its beginning and
/// how many more there are: "a3u-[0-7,9], and 12 more".
[[nodiscard]] std::string fit_nodes(const std::string& folded,
                                    std::size_t count,
                                    std::size_t width);

/// How many of its entries each part gets, of which `wanted` has the lines. Each part takes a line
/// for its title; then each, as long as there is room, gets its first entry, and the rest is dealt
/// out in turns. What comes first is served first.
[[nodiscard]] std::vector<std::size_t> share_lines(
    const std::vector<std::vector<std::size_t>>& wanted, std::size_t room);

}  // namespace flex
