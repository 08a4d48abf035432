// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/asked_nodes.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace flex;
using namespace flex::test;

namespace {

constexpr TimePoint kNoon{Seconds{1'800'000'000}};

/// A directory that is gone after the test.
struct Directory {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("flex-asked-" + std::to_string(::getpid()));

  Directory() { std::filesystem::create_directory(path); }

  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  ~Directory() { std::filesystem::remove_all(path); }
};

std::set<NodeName> names(int count, int first = 0) {
  const std::vector<NodeName> list = nodes("a", count, first);
  return {list.begin(), list.end()};
}

/// Asks for all of these nodes.
AskedFile::Choose all(const std::vector<NodeName>& wanted) {
  return [wanted](const AskedNodes&) { return wanted; };
}

}  // namespace

TEST_CASE("asked: what is written is read", "[provision]") {
  const AskedNodes asked = {
      {.begun = kNoon, .answered = {}, .by = "flex-resume@host:7", .nodes = nodes("a", 3)},
      {.begun = kNoon, .answered = kNoon + Seconds{2}, .by = "x@y:8", .nodes = nodes("b", 1)}};
  CHECK(to_text(asked) ==
        "1800000000 0 flex-resume@host:7 a-[0-2]\n1800000000 1800000002 x@y:8 b-0\n");
  const auto read = parse_asked_nodes(to_text(asked));
  REQUIRE(read);
  CHECK(*read == asked);
  CHECK(parse_asked_nodes("")->empty());
}

TEST_CASE("asked: nonsense is refused", "[provision]") {
  const std::string text = GENERATE(as<std::string>(),
                                    "\n",
                                    "1 2 x a-0",
                                    "x 2 y a-0\n",
                                    "1 x y a-0\n",
                                    "1 2 y\n",
                                    "1 2 y \n",
                                    "1 2  a-0\n",
                                    "1 2 y a-[0\n");
  CHECK_FALSE(parse_asked_nodes(text));
}

TEST_CASE("asked: counts until a look shows what became of it", "[provision]") {
  const Seconds begun{-30};
  const AskedNodes pending = {{.begun = kNoon + begun, .by = "x", .nodes = nodes("a", 1)}};
  CHECK(find_unseen(pending, kNoon, kNoon) == names(1));
  // Whoever asked has died long ago.
  CHECK(find_unseen(pending, kNoon, kNoon + begun + Seconds{900}).empty());
  CHECK_FALSE(find_unseen(pending, kNoon, kNoon + begun + Seconds{899}).empty());
  const AskedNodes answered = {
      {.begun = kNoon + begun, .answered = kNoon, .by = "x", .nodes = nodes("a", 1)}};
  CHECK(find_unseen(answered, kNoon - Seconds{5}, kNoon + Seconds{5}) == names(1));
  CHECK(find_unseen(answered, kNoon + Seconds{9}, kNoon + Seconds{9}) == names(1));
  CHECK(find_unseen(answered, kNoon + Seconds{10}, kNoon + Seconds{10}).empty());
}

TEST_CASE("asked: of two programs the second sees what the first asks for", "[provision]") {
  const Directory dir;
  AskedFile first{dir.path, "flex-resume"};
  AskedFile second{dir.path, "flex-sweeper"};
  REQUIRE(first.reserve(kNoon, all(nodes("a", 2))));
  std::set<NodeName> seen;
  REQUIRE(second.reserve(kNoon, [&](const AskedNodes& asked) {
    seen = find_unseen(asked, kNoon, kNoon);
    return std::vector<NodeName>{};
  }));
  CHECK(seen == names(2));
  CHECK(second.load()->size() == 1);
}

TEST_CASE("asked: what was refused counts no longer, what is not known for a while",
          "[provision]") {
  const Directory dir;
  AskedFile file{dir.path, "flex-resume"};
  REQUIRE(file.reserve(kNoon, all(nodes("a", 3))));
  REQUIRE(file.settle(kNoon + Seconds{5}, {.refused = {{"a-0"}}, .unknown = {{"a-1"}}}));
  const auto asked = file.load();
  REQUIRE(asked);
  CHECK(find_unseen(*asked, kNoon, kNoon + Seconds{5}) == names(2, 1));
  CHECK(find_unseen(*asked, kNoon + Seconds{30}, kNoon + Seconds{30}) == names(1, 1));
  CHECK(find_unseen(*asked, kNoon + Seconds{80}, kNoon + Seconds{80}).empty());
}

TEST_CASE("asked: old entries go when somebody writes", "[provision]") {
  const Directory dir;
  AskedFile file{dir.path, "flex-resume"};
  REQUIRE(file.reserve(kNoon - Seconds{1000}, all(nodes("a", 3))));
  REQUIRE(file.reserve(kNoon, all(nodes("a", 1, 5))));
  CHECK(file.load()->size() == 1);
  REQUIRE(file.settle(kNoon, {.refused = names(1, 5), .unknown = {}}));
  CHECK(file.load()->empty());
}

TEST_CASE("asked: without a place to write nothing may be asked for", "[provision]") {
  AskedFile nowhere{"", "flex-resume"};
  CHECK_FALSE(nowhere.reserve(kNoon, all(nodes("a", 1))));
  const Directory dir;
  std::ofstream(dir.path / "asked") << "nonsense\n";
  AskedFile bad{dir.path, "flex-resume"};
  const auto done = bad.reserve(kNoon, all(nodes("a", 1)));
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().what, ContainsSubstring("asked"));
}
