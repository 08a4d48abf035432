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
  CHECK(to_line({.lease = known}) == "flex(end=1763298000,nodeset=a3u,request=j1)");
  CHECK(from_line(to_line({.lease = known}), kNoon).lease == known);
  CHECK(from_line(to_line({.lease = known}), kNoon).is_whole);
  CHECK(!from_line(to_line({.lease = known}), kNoon + 1h).lease);
  const Answer own{.lease = known, .is_whole = false};
  CHECK(from_line(to_line(own), kNoon).lease == known);
  CHECK(!from_line(to_line(own), kNoon).is_whole);
  CHECK(to_line({}) == "none");
  for (const char* line : {"none", "", "flex(end=soon)"}) {
    CHECK(!from_line(line, kNoon).lease);
    CHECK(is_good(line, kNoon));
  }
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
