// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/duration.h"

#include "test/support/catch.h"

#include <string>
#include <utility>

using namespace flex;

TEST_CASE("parse_duration: every spelling people use", "[core]") {
  const auto [text, seconds] = GENERATE(table<std::string, long>({{"0", 0},
                                                                  {"3600", 3600},
                                                                  {"604800s", 604800},
                                                                  {"90m", 5400},
                                                                  {"12h", 43200},
                                                                  {"7d", 604800},
                                                                  {"1d12h", 129600},
                                                                  {"1h30m15s", 5415},
                                                                  {"4:00:00", 14400},
                                                                  {"04:00:00", 14400},
                                                                  {"30:00", 1800},
                                                                  {"90:00", 5400},
                                                                  {"7-00:00:00", 604800},
                                                                  {"1-12", 129600},
                                                                  {"1-12:30", 131400},
                                                                  {"100:00:00", 360000}}));
  INFO(text);
  const auto parsed = parse_duration(text);
  REQUIRE(parsed);
  CHECK(parsed->count() == seconds);
}

TEST_CASE("parse_duration: refuses what it would have to guess, cut or overflow", "[core]") {
  const auto text = GENERATE(as<std::string>{},
                             "",
                             " ",
                             "abc",
                             "-1",
                             "-5m",
                             "1.5h",
                             "5 m",
                             "m",
                             "10x",
                             "10m10m",
                             "10s10m",
                             "1h30",
                             "1-",
                             "1-24:00:00",
                             "1-00:60:00",
                             "00:60:00",
                             "00:00:60",
                             "1:2:3:4",
                             ":",
                             "1:",
                             "1--2",
                             "99999999999999999999",
                             "9223372036854775807d",
                             "999999999999d",
                             "4000d",
                             "+5",
                             "0x10",
                             "1e3");
  INFO(text);
  const auto parsed = parse_duration(text);
  REQUIRE_FALSE(parsed);
  CHECK(parsed.error().kind == ErrorKind::Invalid);
  CHECK_THAT(parsed.error().what, ContainsSubstring("is not a duration"));
}

TEST_CASE("format_duration: shortest exact spelling, and back again", "[core]") {
  for (const long seconds : {0L, 1L, 60L, 3600L, 86400L, 604800L, 15300L, 5415L}) {
    const auto text = format_duration(Seconds{seconds});
    CHECK(parse_duration(text)->count() == seconds);
  }
  CHECK(format_duration(Seconds{604800}) == "7d");
  CHECK(format_duration(Seconds{15300}) == "255m");
  CHECK(format_slurm_time(Seconds{14400}) == "04:00:00");
  CHECK(format_slurm_time(Seconds{8 * 86400 + 61}) == "8-00:01:01");
}

TEST_CASE("parse_time: RFC 3339 as Google writes it", "[core]") {
  CHECK(format_time(*parse_time("2026-11-16T10:00:00.123-08:00")) == "2026-11-16T18:00:00Z");
  CHECK(format_time(*parse_time("2026-11-16T18:00:00Z")) == "2026-11-16T18:00:00Z");
  CHECK(format_time(*parse_time("9999-12-31T00:00:00Z")) == "9999-12-31T00:00:00Z");
  for (const char* bad : {"",
                          "2026",
                          "2026-13-01T00:00:00Z",
                          "2026-11-16 18:00:00",
                          "2026-11-16T18:00:00",
                          "2026-11-16T18:00:00.Z",
                          "2026-11-16T25:00:00Z",
                          "2026-11-16T18:00:00+1:00"}) {
    INFO(bad);
    CHECK_FALSE(parse_time(bad));
  }
}
