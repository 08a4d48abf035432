// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/state_file.h"

#include "test/support/catch.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace flex;
namespace fs = std::filesystem;

namespace {

/// A directory that goes with the test.
class Scratch {
 public:
  Scratch() {
    std::string name = fs::temp_directory_path() / "flex-state-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ / name; }

  [[nodiscard]] std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator{});
  }

 private:
  fs::path path_{};
};

mode_t mode_of(const std::string& path) {
  struct stat info {};

  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

}  // namespace

TEST_CASE("write_atomically: replaces the text, leaves nothing else behind", "[core]") {
  const Scratch scratch;
  const std::string path = scratch / "status.json";
  const mode_t before = ::umask(0);
  REQUIRE(write_atomically(path, std::string(100000, 'a')));
  ::umask(077);
  REQUIRE(write_atomically(path, "short"));
  ::umask(before);
  CHECK(*read_small_file(path, 100) == "short");
  CHECK(mode_of(path) == 0640);
  CHECK(scratch.count() == 1);
  REQUIRE(write_atomically(path, ""));
  CHECK(read_small_file(path, 0)->empty());
}

TEST_CASE("write_atomically: a new file after a crash in the middle", "[core]") {
  const Scratch scratch;
  std::ofstream(scratch / "memory.json.new") << std::string(5000, 'x');
  REQUIRE(write_atomically(scratch / "memory.json", "new"));
  CHECK(*read_small_file(scratch / "memory.json", 100) == "new");
  CHECK(scratch.count() == 1);
}

TEST_CASE("write_atomically: says what it could not write, and keeps the old", "[core]") {
  const Scratch scratch;
  const auto missing = write_atomically(scratch / "no/such/file", "x");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().kind == ErrorKind::NotFound);
  CHECK_THAT(missing.error().what, ContainsSubstring("no/such/file"));
  REQUIRE(make_directory(scratch / "taken"));
  CHECK_FALSE(write_atomically(scratch / "taken", "x"));
  CHECK(fs::is_directory(scratch / "taken"));
  CHECK(scratch.count() == 1);
}

TEST_CASE("write_atomically: does not follow a link in the way", "[core]") {
  const Scratch scratch;
  std::ofstream(scratch / "precious") << "precious";
  fs::create_symlink(scratch / "precious", scratch / "status.json.new");
  CHECK_FALSE(write_atomically(scratch / "status.json", "x"));
  CHECK(*read_small_file(scratch / "precious", 100) == "precious");
}

TEST_CASE("read_small_file: a file that is missing, too large or none is an error", "[core]") {
  const Scratch scratch;
  std::ofstream(scratch / "file") << "12345";
  CHECK(*read_small_file(scratch / "file", 5) == "12345");
  CHECK(read_small_file(scratch / "file", 4).error().kind == ErrorKind::Invalid);
  CHECK(read_small_file(scratch / "none", 4).error().kind == ErrorKind::NotFound);
  CHECK(read_small_file(scratch / "file/none", 4).error().kind == ErrorKind::NotFound);
  CHECK(read_small_file(scratch / "", 4).error().kind == ErrorKind::Invalid);
  REQUIRE(::mkfifo((scratch / "fifo").c_str(), 0600) == 0);
  CHECK(read_small_file(scratch / "fifo", 4).error().kind == ErrorKind::Invalid);
}

TEST_CASE("make_directory: makes it once, and not where something else is", "[core]") {
  const Scratch scratch;
  const mode_t before = ::umask(077);
  REQUIRE(make_directory(scratch / "dir"));
  ::umask(before);
  CHECK(mode_of(scratch / "dir") == 0750);
  CHECK(make_directory(scratch / "dir"));
  CHECK(make_directory(scratch / "no/dir").error().kind == ErrorKind::NotFound);
  std::ofstream(scratch / "file") << "x";
  CHECK_FALSE(make_directory(scratch / "file"));
}

TEST_CASE("state files: what root makes belongs to the directory's owner", "[core]") {
  if (::geteuid() != 0) {
    WARN("needs root to give files away: skipped");
    return;
  }
  constexpr uid_t kOther = 65534;
  const Scratch scratch;
  const std::string home = scratch / "home";
  REQUIRE(make_directory(home));
  REQUIRE(::chown(home.c_str(), kOther, kOther) == 0);
  REQUIRE(write_atomically(home + "/file", "x"));
  REQUIRE(make_directory(home + "/below"));
  const auto lock = FileLock::acquire(home + "/lock");
  REQUIRE(lock);
  for (const char* name : {"/file", "/below", "/lock"}) {
    struct stat info {};

    REQUIRE(::stat((home + name).c_str(), &info) == 0);
    CHECK(info.st_uid == kOther);
    CHECK(info.st_gid == kOther);
  }
}

TEST_CASE("FileLock: one at a time, and says whose it is", "[core]") {
  const Scratch scratch;
  const std::string path = scratch / "sweeper.lock";
  const mode_t before = ::umask(077);
  auto lock = FileLock::acquire(path);
  ::umask(before);
  REQUIRE(lock);
  CHECK(*read_small_file(path, 100) == fmt::format("{}\n", ::getpid()));
  CHECK(mode_of(path) == 0640);
  // A second descriptor is as good as a second process.
  const auto second = FileLock::acquire(path);
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::Precondition);
  CHECK_THAT(second.error().what, ContainsSubstring(fmt::format("process {}", ::getpid())));
}

TEST_CASE("FileLock: is free again when its owner ends, also after a move", "[core]") {
  const Scratch scratch;
  const std::string path = scratch / "sweeper.lock";
  std::ofstream(path) << "4294967296 left by somebody with a long pid\n";
  {
    std::optional<FileLock> kept;
    {
      auto lock = FileLock::acquire(path);
      REQUIRE(lock);
      kept.emplace(*std::move(lock));
    }
    CHECK_FALSE(FileLock::acquire(path));
  }
  CHECK(FileLock::acquire(path));
  CHECK(*read_small_file(path, 100) == fmt::format("{}\n", ::getpid()));
}

TEST_CASE("FileLock: a process that dies without a word gives it back", "[core]") {
  const Scratch scratch;
  const std::string path = scratch / "sweeper.lock";
  std::array<int, 2> ready{};
  REQUIRE(::pipe(ready.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto lock = FileLock::acquire(path);
    const char word = lock ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &word, 1));
    for (;;) ::pause();
  }
  char word = 0;
  REQUIRE(::read(ready[0], &word, 1) == 1);
  CHECK(word == 'y');
  const auto held = FileLock::acquire(path);
  REQUIRE_FALSE(held);
  CHECK_THAT(held.error().what, ContainsSubstring(fmt::format("process {}", child)));
  REQUIRE(::kill(child, SIGKILL) == 0);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(FileLock::acquire(path));
  ::close(ready[0]);
  ::close(ready[1]);
}
