// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/earliest.h"

#include "test/support/catch.h"

using namespace flex;
using namespace flex::plugin;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kNoon{Seconds{1763294400}};

NodeLease lease(TimePoint end, std::string request = "j1") {
  return {.end = end, .nodeset = "a3u", .request = std::move(request)};
}

}  // namespace

TEST_CASE("earliest: the VM that ends first counts for the job", "[plugin]") {
  const std::vector<NodeLease> leases{
      lease(kNoon + 2h, "j2"), lease(kNoon + 1h, "j1"), lease(kNoon + 3h, "j3")};
  CHECK(earliest(leases, kNoon) == leases[1]);
}

TEST_CASE("earliest: an end that is over is none", "[plugin]") {
  CHECK(!earliest({}, kNoon));
  CHECK(!earliest({lease(kNoon), lease(kNoon - 1s)}, kNoon));
  CHECK(earliest({lease(kNoon - 1s), lease(kNoon + 1s)}, kNoon) == lease(kNoon + 1s));
}

TEST_CASE("to_line, from_line: there and back, and none", "[plugin]") {
  const NodeLease known = lease(kNoon + 1h);
  CHECK(to_line({.lease = known}, kNoon) == "flex(end=1763298000,nodeset=a3u,request=j1)");
  CHECK(from_line(to_line({.lease = known}, kNoon), kNoon).lease == known);
  CHECK(from_line(to_line({.lease = known}, kNoon), kNoon).is_whole);
  CHECK(!from_line(to_line({.lease = known}, kNoon), kNoon + 1h).lease);
  const Answer own{.lease = known, .is_whole = false};
  CHECK(from_line(to_line(own, kNoon), kNoon).lease == known);
  CHECK(!from_line(to_line(own, kNoon), kNoon).is_whole);
  CHECK(to_line({}, kNoon) == "none 1763294400");
  for (const char* line : {"none 1763294400", "", "flex(end=soon)"}) {
    CHECK(!from_line(line, kNoon).lease);
    CHECK(is_good(line, kNoon));
  }
}

TEST_CASE("is_good: an answer that knew of no end is asked for again after five minutes",
          "[plugin]") {
  for (const bool is_whole : {true, false}) {
    const std::string line = to_line({.lease = {}, .is_whole = is_whole}, kNoon);
    CAPTURE(line);
    CHECK(from_line(line, kNoon).is_whole == is_whole);
    CHECK(is_good(line, kNoon));
    CHECK(is_good(line, kNoon + 299s));
    CHECK(!is_good(line, kNoon + 300s));
    CHECK(!is_good(line, kNoon - 1h));
  }
  // As older versions wrote it.
  CHECK(!is_good("none", kNoon));
  CHECK(!is_good("own none", kNoon));
  CHECK(is_good(to_line({.lease = lease(kNoon + 1h), .is_whole = false}, kNoon), kNoon + 30min));
}

TEST_CASE("is_good: a question that nobody answered is asked again after a while", "[plugin]") {
  const std::string line = unanswered_line(kNoon);
  CHECK(!from_line(line, kNoon).lease);
  CHECK(is_good(line, kNoon));
  CHECK(is_good(line, kNoon + 299s));
  CHECK(!is_good(line, kNoon + 300s));
  CHECK(!is_good(line, kNoon - 1h));
  CHECK(!is_good("unanswered ", kNoon));
}
