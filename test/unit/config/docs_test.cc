// SPDX-License-Identifier: GPL-2.0-or-later
// The manual page and the example know the same keys as the schema.
#include "lib/config/schema.h"
#include "test/support/catch.h"
#include "test/unit/config/support.h"

#include <algorithm>
#include <sstream>

using namespace flex;
using namespace flex::test;

namespace {

/// "max_run_duration" of "nodesets.NAME.dws_flex.max_run_duration".
std::string last_part(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

/// The keys that the manual page has an entry for: lines ".B key" after a ".TP".
std::vector<std::string> keys_in_manual() {
  std::vector<std::string> keys;
  std::istringstream page(read_text(source_path("docs/man/flex-start.yaml.5")));
  bool is_tag = false;
  for (std::string line; std::getline(page, line); is_tag = line == ".TP")
    if (is_tag && line.rfind(".B ", 0) == 0) keys.push_back(line.substr(3));
  return keys;
}

}  // namespace

TEST_CASE("flex-start.yaml.5: has an entry for every key and for nothing else", "[config]") {
  auto expected = schema_keys();
  auto seen = keys_in_manual();
  std::sort(expected.begin(), expected.end());
  std::sort(seen.begin(), seen.end());
  CHECK(seen == expected);
}

TEST_CASE("flex-start.yaml.5: names every default repair reason", "[config]") {
  std::string page = read_text(source_path("docs/man/flex-start.yaml.5"));
  page.erase(std::remove(page.begin(), page.end(), '\\'), page.end());
  for (const std::string& reason : default_repair_reasons()) {
    INFO(reason);
    CHECK(page.find(reason) != std::string::npos);
  }
}

TEST_CASE("flex-start.yaml.example: loads without a problem or a warning", "[config]") {
  const auto loaded = parse_config(read_text(source_path("etc/flex-start.yaml.example")),
                                   "flex-start.yaml.example");
  for (const Problem& problem : loaded.problems) UNSCOPED_INFO(problem.text());
  CHECK(loaded.ok());
  CHECK(loaded.config.warnings.empty());
}

TEST_CASE("flex-start.yaml.example: mentions every key that this version uses", "[config]") {
  const std::string text = read_text(source_path("etc/flex-start.yaml.example"));
  for (const std::string& key : schema_keys()) {
    const std::string name = last_part(key);
    // Known only to be refused.
    if (name == "reservation" || name == "reservation_name" || name == "enabled") continue;
    INFO(key);
    CHECK(text.find(name + ":") != std::string::npos);
  }
}
