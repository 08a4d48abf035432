// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/asked_nodes.h"

#include "test/support/builders.h"
#include "test/support/catch.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
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

TEST_CASE("asked: what a program that has died asked for counts for a minute more", "[provision]") {
  const Directory dir;
  AskedFile file{dir.path, "flex-sweeper"};
  REQUIRE(file.reserve(kNoon, all(nodes("a", 1, 7))));
  const pid_t child = ::fork();
  if (child == 0)
    ::_exit(AskedFile{dir.path, "flex-resume"}.reserve(kNoon, all(nodes("a", 2))) ? 0 : 1);
  int status = 1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  REQUIRE(file.load()->size() == 2);
  const TimePoint noticed = kNoon + Seconds{120};
  const auto asked = file.load_and_tidy(noticed);
  REQUIRE(asked);
  // It is written down, and later looks do not begin anew.
  CHECK(*file.load() == *asked);
  CHECK(*file.load_and_tidy(noticed + Seconds{60}) == *asked);
  // The other one lives.
  const std::set<NodeName> living = names(1, 7);
  CHECK(find_unseen(*asked, noticed + Seconds{69}, noticed + Seconds{69}).size() == 3);
  CHECK(find_unseen(*asked, noticed + Seconds{70}, noticed + Seconds{70}) == living);
}

TEST_CASE("asked: of a process on another host nothing is known", "[provision]") {
  const Directory dir;
  std::ofstream(dir.path / "asked") << "1800000000 0 flex-resume@elsewhere:999999999 a-0\n"
                                    << "1800000000 0 flex-resume a-1\n";
  AskedFile file{dir.path, "flex-sweeper"};
  const auto asked = file.load_and_tidy(kNoon + Seconds{60});
  REQUIRE(asked);
  CHECK(find_unseen(*asked, kNoon + Seconds{899}, kNoon + Seconds{899}) == names(2));
}

TEST_CASE("asked: a damaged file is written anew when nothing in it can count", "[provision]") {
  const Directory dir;
  const std::filesystem::path path = dir.path / "asked";
  std::ofstream(path) << "nonsense";
  AskedFile file{dir.path, "flex-resume"};

  struct ::stat about {};

  REQUIRE(::stat(path.c_str(), &about) == 0);
  const TimePoint damaged{Seconds{about.st_mtim.tv_sec}};
  const auto refused = file.reserve(damaged + Seconds{899}, all(nodes("a", 1)));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().what, ContainsSubstring("it is written anew a quarter of an hour"));
  REQUIRE(file.reserve(damaged + Seconds{900}, all(nodes("a", 1))));
  CHECK(file.load()->size() == 1);
}

TEST_CASE("asked: without a place to write nothing may be asked for", "[provision]") {
  AskedFile nowhere{"", "flex-resume"};
  CHECK_FALSE(nowhere.reserve(kNoon, all(nodes("a", 1))));
  const Directory dir;
  std::ofstream(dir.path / "asked") << "nonsense\n";
  AskedFile bad{dir.path, "flex-resume"};
  // Before the file was written.
  const auto done = bad.reserve(TimePoint{Seconds{1}}, all(nodes("a", 1)));
  REQUIRE_FALSE(done);
  CHECK_THAT(done.error().what, ContainsSubstring("asked"));
}
