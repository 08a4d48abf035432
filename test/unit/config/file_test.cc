// SPDX-License-Identifier: GPL-2.0-or-later
// The file itself: who may write it, and what else can be in its place.
#include "test/support/catch.h"
#include "test/unit/config/support.h"

#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

using namespace flex;
using namespace flex::test;

namespace {

/// A directory of its own for a test, gone with it.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "flex-config-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string file(const std::string& text, mode_t mode) const {
    const std::string name = (path_ / "flex-start.yaml").string();
    std::ofstream(name) << text;
    REQUIRE(::chmod(name.c_str(), mode) == 0);
    return name;
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_{};
};

std::string only_problem(const std::string& path) {
  const auto loaded = load_config(path);
  REQUIRE(loaded.problems.size() == 1);
  CHECK(loaded.problems[0].file == path);
  return loaded.problems[0].text();
}

}  // namespace

TEST_CASE("load_config: reads a file that only its owner can write", "[config]") {
  const Scratch scratch;
  const auto mode = GENERATE(mode_t{0644}, mode_t{0600}, mode_t{0640}, mode_t{0444});
  const std::string path = scratch.file(minimal(), mode);
  const auto loaded = load_config(path);
  CHECK(loaded.ok());
  CHECK(loaded.config.file == path);
  CHECK(loaded.config.nodesets.size() == 1);
}

TEST_CASE("load_config: refuses a file that others can write", "[config]") {
  const Scratch scratch;
  const auto mode = GENERATE(mode_t{0664}, mode_t{0646}, mode_t{0666}, mode_t{0620});
  const std::string path = scratch.file(minimal(), mode);
  CHECK_THAT(only_problem(path), EndsWith("(chmod go-w " + path + ")"));
}

TEST_CASE("load_config: refuses another user's file, as root too", "[config]") {
  if (::geteuid() != 0) {
    WARN("needs root to give a file away: skipped");
    return;
  }
  const Scratch scratch;
  const std::string path = scratch.file(minimal(), 0644);
  REQUIRE(::chown(path.c_str(), 12345, 0) == 0);
  CHECK_THAT(only_problem(path), ContainsSubstring("owned by user id 12345"));
}

TEST_CASE("load_config: says where a missing file belongs", "[config]") {
  const Scratch scratch;
  const std::string path = (scratch.path() / "missing.yaml").string();
  CHECK_THAT(only_problem(path), ContainsSubstring("there is no such file"));
  CHECK_THAT(only_problem(path), ContainsSubstring("--config or $FLEX_START_CONFIG"));
}

TEST_CASE("load_config: refuses what is no file, and does not hang on it", "[config]") {
  const Scratch scratch;
  CHECK_THAT(only_problem(scratch.path().string()), ContainsSubstring("this is a directory"));
  const std::string fifo = (scratch.path() / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  CHECK_THAT(only_problem(fifo), ContainsSubstring("not a regular file"));
  CHECK_THAT(only_problem(""), ContainsSubstring("no such file"));
}

TEST_CASE("load_config: refuses a file that is too large", "[config]") {
  const Scratch scratch;
  const std::string path = scratch.file(std::string((1U << 20U) + 1, '\n'), 0644);
  CHECK_THAT(only_problem(path), ContainsSubstring("larger than 1 MiB"));
}

TEST_CASE("load_config: says that a file cannot be read", "[config]") {
  if (::geteuid() == 0) {
    WARN("root can read everything: skipped");
    return;
  }
  const Scratch scratch;
  CHECK_THAT(only_problem(scratch.file(minimal(), 0000)), ContainsSubstring("cannot be read"));
}
