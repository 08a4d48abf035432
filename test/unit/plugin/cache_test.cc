// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/cache.h"

#include "test/support/catch.h"

#include <atomic>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace flex;
using namespace flex::plugin;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

/// A directory that goes with the test, and the cache's place in it.
class Scratch {
 public:
  Scratch() {
    std::string name = fs::temp_directory_path() / "flex-cache-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ~Scratch() { fs::remove_all(path_); }

  [[nodiscard]] fs::path operator/(const std::string& name) const { return path_ / name; }

  [[nodiscard]] CachePlace place(JobId job) const {
    return {.directory = path_ / "flex-start", .job = job};
  }

 private:
  fs::path path_{};
};

Deadline soon() {
  return std::chrono::steady_clock::now() + 60s;
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};

  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

std::string never() {
  FAIL("asked");
  return "";
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Whatever is there is good.
bool any(const std::string& /*line*/) {
  return true;
}

}  // namespace

TEST_CASE("read_or_ask: asks once, for each job", "[plugin]") {
  const Scratch scratch;
  int asked = 0;
  const auto ask = [&asked] { return "answer " + std::to_string(++asked); };
  CHECK(*read_or_ask(scratch.place(7), soon(), any, ask) == "answer 1");
  CHECK(*read_or_ask(scratch.place(7), soon(), any, ask) == "answer 1");
  CHECK(*read_or_ask(scratch.place(8), soon(), any, ask) == "answer 2");
  CHECK(asked == 2);
  CHECK(content(scratch / "flex-start/7") == "answer 1\n");
  CHECK(mode_of(scratch / "flex-start") == 0700);
  CHECK(mode_of(scratch / "flex-start/7") == 0600);
}

TEST_CASE("read_or_ask: what is no longer good is asked for again, and kept", "[plugin]") {
  Scratch scratch;
  const auto is_new = [](const std::string& line) { return line == "new"; };
  CHECK(*read_or_ask(scratch.place(7), soon(), any, [] { return "a longer line"; }) ==
        "a longer line");
  CHECK(*read_or_ask(scratch.place(7), soon(), is_new, [] { return "new"; }) == "new");
  CHECK(*read_or_ask(scratch.place(7), soon(), is_new, [] { return "never"; }) == "new");
}

TEST_CASE("read_or_ask: half a line is nobody's answer", "[plugin]") {
  const Scratch scratch;
  fs::create_directory(scratch / "flex-start");
  fs::permissions(scratch / "flex-start", fs::perms::owner_all);
  std::ofstream(scratch / "flex-start/7") << "flex(end=17632980";
  CHECK(*read_or_ask(scratch.place(7), soon(), any, [] { return "none"; }) == "none");
  CHECK(content(scratch / "flex-start/7") == "none\n");
}

TEST_CASE("read_or_ask: of many at once one asks, the others wait for it", "[plugin]") {
  const Scratch scratch;
  std::atomic<int> asked = 0;
  std::atomic<int> same = 0;
  {
    std::vector<std::jthread> steps;
    for (int i = 0; i < 8; ++i) {
      steps.emplace_back([&] {
        const auto text = read_or_ask(scratch.place(7), soon(), any, [&asked] {
          std::this_thread::sleep_for(50ms);
          return "answer " + std::to_string(++asked);
        });
        if (text && *text == "answer 1") ++same;
      });
    }
  }
  CHECK(asked == 1);
  CHECK(same == 8);
}

TEST_CASE("read_or_ask: who cannot wait any longer goes without", "[plugin]") {
  const Scratch scratch;
  REQUIRE(read_or_ask(scratch.place(7), soon(), any, [] { return "none"; }));
  const int other = ::open((scratch / "flex-start/7").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(other, LOCK_EX) == 0);
  const auto text =
      read_or_ask(scratch.place(7), std::chrono::steady_clock::now() + 50ms, any, never);
  REQUIRE(!text);
  CHECK(text.error().kind == ErrorKind::Retry);
  ::close(other);
  CHECK(*read_or_ask(scratch.place(7), soon(), any, never) == "none");
}

TEST_CASE("read_or_ask: nobody else's directory, nobody's links", "[plugin]") {
  const Scratch scratch;
  fs::create_directory(scratch / "elsewhere");

  SECTION("a link instead of the directory") {
    fs::create_directory_symlink(scratch / "elsewhere", scratch / "flex-start");
  }
  SECTION("a directory that others may write to") {
    fs::create_directory(scratch / "flex-start");
    fs::permissions(scratch / "flex-start", fs::perms::all);
  }
  SECTION("a link instead of the file") {
    fs::create_directory(scratch / "flex-start");
    fs::permissions(scratch / "flex-start", fs::perms::owner_all);
    std::ofstream(scratch / "elsewhere/precious") << "text";
    fs::create_symlink(scratch / "elsewhere/precious", scratch / "flex-start/7");
  }
  SECTION("a directory of somebody else's") {
    if (::geteuid() != 0) return;
    fs::create_directory(scratch / "flex-start");
    fs::permissions(scratch / "flex-start", fs::perms::owner_all);
    REQUIRE(::chown((scratch / "flex-start").c_str(), 1, 1) == 0);
  }
  SECTION("no place for a directory") {
    fs::create_symlink("/nowhere/at/all", scratch / "flex-start");
  }

  const auto text = read_or_ask(scratch.place(7), soon(), any, never);
  REQUIRE(!text);
  CHECK(text.error().kind == ErrorKind::Denied);
  CHECK(text.error().what.starts_with((scratch / "flex-start").string()));
  CHECK(fs::is_empty(scratch / "elsewhere") != fs::exists(scratch / "elsewhere/precious"));
  if (fs::exists(scratch / "elsewhere/precious"))
    CHECK(content(scratch / "elsewhere/precious") == "text");
}

TEST_CASE("remove_cached: the job's file and no other", "[plugin]") {
  const Scratch scratch;
  CHECK(remove_cached(scratch.place(7)));  // not even a directory
  for (const JobId job : {7U, 8U})
    REQUIRE(read_or_ask(scratch.place(job), soon(), any, [] { return "none"; }));
  CHECK(remove_cached(scratch.place(7)));
  CHECK(remove_cached(scratch.place(7)));
  CHECK(!fs::exists(scratch / "flex-start/7"));
  CHECK(fs::exists(scratch / "flex-start/8"));
  fs::permissions(scratch / "flex-start", fs::perms::all);
  CHECK(!remove_cached(scratch.place(8)));
}
