// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/trust.h"

#include "test/support/catch.h"

#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace flex;

namespace {

struct File {
  std::string path =
      (std::filesystem::temp_directory_path() / ("flex-trust-" + std::to_string(::getpid())))
          .string();

  explicit File(mode_t mode, const std::string& text = "secret") {
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
  }

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("trusted file: its owner's alone to write, and to read where that matters", "[core]") {
  const auto [mode, is_good, is_secret] = GENERATE(table<mode_t, bool, bool>({
      {0600, true, true},
      {0400, true, true},
      {0644, true, false},
      {0640, true, false},
      {0604, true, false},
      {0660, false, false},
      {0602, false, false},
  }));
  CAPTURE(mode);
  const File file(mode);
  CHECK(read_trusted_file(file.path, {}, 100).has_value() == is_good);
  CHECK(read_trusted_file(file.path, {}, 100, Readers::Owner).has_value() == is_secret);
}

TEST_CASE("trusted file: all of it, or an error", "[core]") {
  const File file(0600, "0123456789");
  CHECK(*read_trusted_file(file.path, {}, 10) == "0123456789");
  const auto big = read_trusted_file(file.path, {}, 9);
  REQUIRE_FALSE(big);
  CHECK(big.error().kind == ErrorKind::Invalid);
  const auto none = read_trusted_file(file.path + "-none", {}, 9);
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::NotFound);
  CHECK_FALSE(read_trusted_file("/tmp", {}, 9));
}
