// SPDX-License-Identifier: GPL-2.0-or-later
#include "timeleft/timeleft.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kNow{Seconds{1'800'000'000}};

}  // namespace

TEST_CASE("parse_end: seconds since 1970", "[timeleft]") {
  const auto end = parse_end("1800000000");
  REQUIRE(end);
  CHECK(*end == kNow);
  CHECK(*parse_end("0") == TimePoint{});
}

TEST_CASE("parse_end: nothing there is not the same as something else there", "[timeleft]") {
  CHECK(parse_end("").error().kind == ErrorKind::NotFound);
  const auto text = GENERATE(as<std::string>{},
                             " ",
                             "-1",
                             "+1",
                             "1.5",
                             "1800000000 ",
                             "1e9",
                             "0x10",
                             "soon",
                             "2026-11-16T18:35",
                             "9999999999999",
                             std::string(10'000, '9'));
  INFO(text);
  const auto end = parse_end(text);
  REQUIRE(!end);
  CHECK(end.error().kind == ErrorKind::Invalid);
  CHECK(end.error().what.size() < 150);
}

TEST_CASE("parse_min: as in sbatch --time", "[timeleft]") {
  const auto [text, wanted] = GENERATE(table<std::string, Seconds>(
      {{"0", 0s}, {"10", 10min}, {"10m", 10min}, {"90s", 90s}, {"2:30", 150s}, {"1-0", 24h}}));
  INFO(text);
  CHECK(*parse_min(text) == wanted);
}

TEST_CASE("parse_min: refuses in one sentence", "[timeleft]") {
  const auto text = GENERATE(as<std::string>{}, "", "-1", "abc", "10 m", std::string(10'000, '9'));
  const auto least = parse_min(text);
  REQUIRE(!least);
  CHECK(least.error().what == "--min: not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS");
}

TEST_CASE("time_left: never below nothing", "[timeleft]") {
  CHECK(time_left(kNow + 90s, kNow) == 90s);
  CHECK(time_left(kNow, kNow) == 0s);
  CHECK(time_left(kNow - 90s, kNow) == 0s);
  CHECK(time_left(TimePoint{Seconds{999'999'999'999}}, kNow) > 24h);
}

TEST_CASE("is_enough: --min itself is enough, nothing never is", "[timeleft]") {
  CHECK(is_enough(600s, 600s));
  CHECK(!is_enough(599s, 600s));
  CHECK(is_enough(1s, 0s));
  CHECK(!is_enough(0s, 0s));
}

TEST_CASE("format_left: as people read it", "[timeleft]") {
  CHECK(format_left(2h + 13min + 5s) == "2:13:05");
  CHECK(format_left(0s) == "0:00:00");
  CHECK(format_left(12h) == "12:00:00");
  CHECK(format_left(26h + 5s) == "1-02:00:05");
}
