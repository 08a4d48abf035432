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
  CHECK(to_line(known) == "flex(end=1763298000,nodeset=a3u,request=j1)");
  CHECK(from_line(to_line(known), kNoon) == known);
  CHECK(!from_line(to_line(known), kNoon + 1h));
  CHECK(to_line(std::nullopt) == "none");
  CHECK(!from_line("none", kNoon));
  CHECK(!from_line("", kNoon));
  CHECK(!from_line("flex(end=soon)", kNoon));
}
