// SPDX-License-Identifier: GPL-2.0-or-later
// Lines that fit a terminal.
#include "ctl/table.h"

#include "test/support/catch.h"

using namespace flex;

namespace {

const Terminal kNarrow{.is_terminal = true, .has_colour = false, .width = 20, .height = 10};

}  // namespace

TEST_CASE("table: columns are aligned, and what is too wide is cut at its end", "[ctl]") {
  const std::vector<std::string> lines = format_table(
      {{{"a"}, {"12"}, {"a long story without end"}}, {{"bcd"}, {"3"}, {"x"}}}, kNarrow);
  CHECK(lines == std::vector<std::string>{"a    12  a long sto…", "bcd  3   x"});
}

TEST_CASE("table: an empty cell leaves its column free, and colours take no room", "[ctl]") {
  Terminal colourful = kNarrow;
  colourful.has_colour = true;
  const auto lines =
      format_table({{{"a"}, {""}, {"x", Colour::Red}}, {{"b"}, {"22"}, {"y"}}}, colourful);
  CHECK(lines == std::vector<std::string>{"a      \033[31mx\033[0m", "b  22  y"});
}

TEST_CASE("table: a text is cut between characters", "[ctl]") {
  CHECK(cut("für dich", 8) == "für dich");
  CHECK(cut("für dich", 4) == "für…");
  CHECK(cut("für", 0).empty());
  CHECK(width_of("für…") == 4);
}

TEST_CASE("table: a list of nodes says how many more there are", "[ctl]") {
  CHECK(fit_nodes("a-[0-9]", 10, 7) == "a-[0-9]");
  const std::string cut_list = fit_nodes("a-[0,2,4,6,8,10,12,14,16,18,20]", 11, 24);
  CHECK(cut_list == "a-[0,2,4,6], and 7 more");
  CHECK(width_of(fit_nodes("a-[0,2,4,6,8,10,12,14,16,18,20]", 11, 5)) <= 5);
  CHECK(fit_nodes("not a [list", 3, 6) == "not a…");
}

TEST_CASE("table: ten thousand scattered nodes fit a line", "[ctl]") {
  std::string folded = "a3u-[0";
  for (int i = 2; i < 20000; i += 2) folded += "," + std::to_string(i);
  const std::string line = fit_nodes(folded + "]", 10000, 60);
  CHECK(width_of(line) <= 60);
  CHECK_THAT(line, ContainsSubstring("], and 99"));
}

TEST_CASE("table: lines are shared, first come first served, nobody without", "[ctl]") {
  using Shares = std::vector<std::size_t>;
  const Shares many(100, 1);
  CHECK(share_lines({{1, 1}, {1, 1, 1}}, 10) == Shares{2, 3});
  CHECK(share_lines({many, many}, 13) == Shares{6, 5});
  CHECK(share_lines({many, {1}, many}, 12) == Shares{4, 1, 4});
  CHECK(share_lines({many, many}, 3) == Shares{1, 0});
  CHECK(share_lines({many, many}, 0) == Shares{0, 0});
  CHECK(share_lines({}, 7).empty());
  // An entry of two lines is not shown by half; what is smaller may take the line.
  CHECK(share_lines({{2, 2}, {1, 1, 1}}, 6) == Shares{1, 2});
}
