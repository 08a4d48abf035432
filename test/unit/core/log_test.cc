// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/log.h"

#include "test/support/catch.h"

#include <string>
#include <vector>

using namespace flex;

TEST_CASE("format_fields: one event is one line whatever the values hold", "[core]") {
  CHECK(format_fields("requested", {{"job", 12}, {"nodes", "a3u-[0-3]"}, {"n", 4}}) ==
        "event=requested job=12 nodes=a3u-[0-3] n=4");
  CHECK(format_fields("x", {{"why", "two words"}}) == "event=x why=\"two words\"");
  CHECK(format_fields("x", {{"why", "a\nevent=forged \"q\" \\ \x01"}}) ==
        "event=x why=\"a\\nevent=forged \\\"q\\\" \\\\ \\x01\"");
  CHECK(format_fields("x", {{"why", ""}}) == "event=x");
}

TEST_CASE("Log: writes what is at or above its level", "[core]") {
  std::vector<std::string> lines;
  const Log log{[&](LogLevel, std::string_view line) { lines.emplace_back(line); },
                LogLevel::Warning};
  log.info("no");
  log.warning("yes");
  log.error("also");
  CHECK(lines == std::vector<std::string>{"event=yes", "event=also"});
  CHECK(parse_log_level("debug"));
  CHECK_FALSE(parse_log_level("loud"));
}
