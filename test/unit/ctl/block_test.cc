// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/import/block.h"

#include "test/support/catch.h"

using namespace flex;

namespace {

/// A text as a section, with what is said about it.
struct Opened {
  Problems problems{"f"};
  std::optional<TreeNode> root{};
  Source source{.problems = problems};

  explicit Opened(const std::string& text, Spelling spelling = Spelling::Snake) {
    root = parse_tree(text, problems);
    REQUIRE(root);
    source.spelling = spelling;
    source.vars = child(*root, "vars");
  }

  Block block() { return {source, *root, ""}; }

  std::vector<std::string> said() {
    std::vector<std::string> lines;
    for (const Problem& problem : problems.take()) lines.push_back(problem.text());
    return lines;
  }
};

}  // namespace

TEST_CASE("to_snake: camelCase to snake_case", "[ctl]") {
  CHECK(to_snake("minNodeCount") == "min_node_count");
  CHECK(to_snake("machine_type") == "machine_type");
  CHECK(to_snake("id") == "id");
  CHECK(to_snake("").empty());
}

TEST_CASE("Block: numbers and durations in all the ways that they are written", "[ctl]") {
  Opened opened("{a: 7, b: \"8\", c: 9.0, d: 3600, e: \"604800s\", f: \"60\"}");
  Block block = opened.block();
  CHECK(block.number("a", 10).value == 7U);
  CHECK(block.number("b", 10).value == 8U);
  CHECK(block.number("c", 10).value == 9U);
  CHECK(block.duration("d").value == Seconds{3600});
  CHECK(block.duration("e").value == Seconds{604800});
  CHECK(block.duration("f").value == Seconds{60});
  CHECK(opened.said().empty());
}

TEST_CASE("Block: what is no number is said with its place", "[ctl]") {
  Opened opened("a: many\nb: -1\nc: 11\nd: [1]\ne: 1.5s\nf: 99999999999999999999s\n");
  Block block = opened.block();
  CHECK_FALSE(block.number("a", 10));
  CHECK_FALSE(block.number("b", 10));
  CHECK_FALSE(block.number("c", 10));
  CHECK_FALSE(block.number("d", 10));
  CHECK_FALSE(block.duration("e"));
  CHECK_FALSE(block.duration("f"));
  const auto said = opened.said();
  REQUIRE(said.size() == 6);
  CHECK(said[0] == "f:1:4: a cannot be 'many' (a whole number from 0 to 10)");
  CHECK(said[3] == "f:4:4: d must be a whole number");
}

TEST_CASE("Block: null and the empty text are not said", "[ctl]") {
  Opened opened("{a: null, b: \"\", c: ~}");
  Block block = opened.block();
  CHECK_FALSE(block.text("a"));
  CHECK_FALSE(block.text("b"));
  CHECK_FALSE(block.number("c", 1));
  CHECK_FALSE(block.text("d"));
  CHECK(opened.said().empty());
}

TEST_CASE("Block: follows references to vars, and no others", "[ctl]") {
  Opened opened(
      "vars: {n: 3, m: $(vars.n), x: $(vars.y), y: $(vars.x), zone: us-east4-a}\n"
      "a: $(vars.m)\nb: $(vars.none)\nc: $(net.id)\nd: ((var.n * 2))\ne: $(vars.x)\n");
  Block block = opened.block();
  CHECK(block.number("a", 10).value == 3U);
  CHECK(block.number("a", 10).mark == Mark{2, 4});
  CHECK(block.text("zone").value == "us-east4-a");
  CHECK(block.text("zone").from == "vars.zone");
  for (const std::string_view name : {"b", "c", "d", "e"}) CHECK_FALSE(block.text(name));
  const auto said = opened.said();
  REQUIRE(said.size() == 4);
  CHECK(said[1] ==
        "f:4:4: c is '$(net.id)', which only the toolkit can work out (write the value itself)");
}

TEST_CASE("Block: knows what nobody asked for, in either spelling", "[ctl]") {
  Opened opened("{minNodeCount: 1, max_node_count: 2, other: 3}", Spelling::Any);
  Block block = opened.block();
  CHECK(block.number("min_node_count", 9).from == "minNodeCount");
  CHECK(block.number("max_node_count", 9).value == 2U);
  const auto rest = block.rest();
  REQUIRE(rest.size() == 1);
  CHECK(rest[0]->text == "other");
}

TEST_CASE("Block: lists and sections of the wrong kind are said", "[ctl]") {
  Opened opened("{a: x, b: [y], c: {z: 1}, d: [{e: 1}, 2]}");
  Block block = opened.block();
  CHECK(block.texts("a").empty());
  CHECK(block.texts("b").size() == 1);
  CHECK_FALSE(block.section("a"));
  CHECK(block.section("c"));
  CHECK(block.sections("c").empty());
  CHECK(block.sections("d").size() == 1);
  CHECK(opened.said().size() == 4);
}
