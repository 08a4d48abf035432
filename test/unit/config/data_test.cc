// SPDX-License-Identifier: GPL-2.0-or-later
// Every file under test/data/config: the bad ones with the problems that their first lines name.
#include "test/support/catch.h"
#include "test/unit/config/support.h"

#include <algorithm>
#include <sstream>

using namespace flex;
using namespace flex::test;

namespace {

std::vector<std::filesystem::path> yaml_files(const std::string& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_path(directory)))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The "# expect: …" lines at the top of a file.
std::vector<std::string> expected_in(const std::string& text) {
  const std::string mark = "# expect: ";
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line) && line.rfind(mark, 0) == 0;)
    lines.push_back(line.substr(mark.size()));
  return lines;
}

/// An expectation that ends in "…" is the beginning of the message: the rest is yaml-cpp's.
bool matches(const std::string& expected, const std::string& seen) {
  const std::string open_end = "…";
  if (!expected.ends_with(open_end)) return expected == seen;
  return seen.rfind(expected.substr(0, expected.size() - open_end.size()), 0) == 0;
}

}  // namespace

TEST_CASE("config: names every problem of a bad file with line, column and hint", "[config]") {
  const auto files = yaml_files("test/data/config/bad");
  CHECK(files.size() >= 25);
  for (const auto& file : files) {
    INFO(file.filename().string());
    const std::string text = read_text(file);
    const auto expected = expected_in(text);
    const auto seen = problems_of(text);
    REQUIRE_FALSE(expected.empty());
    REQUIRE(seen.size() == expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      INFO("expected: " << expected[i] << "\nseen:     " << seen[i]);
      CHECK(matches(expected[i], seen[i]));
    }
  }
}

TEST_CASE("config: finds nothing wrong with a good file", "[config]") {
  const auto files = yaml_files("test/data/config/good");
  CHECK(files.size() >= 5);
  for (const auto& file : files) {
    INFO(file.filename().string());
    const auto problems = problems_of(read_text(file));
    CHECK(problems == std::vector<std::string>{});
  }
}
