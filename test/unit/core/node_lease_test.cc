// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/node_lease.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;

TEST_CASE("read_lease: what write_lease wrote, wherever it stands", "[core]") {
  const NodeLease lease{
      .end = TimePoint{Seconds{1763310900}}, .nodeset = "a3u", .request = "j12-0f3a"};
  const std::string token = write_lease(lease);
  CHECK(token == "flex(end=1763310900,nodeset=a3u,request=j12-0f3a)");
  CHECK(read_lease(token) == lease);
  CHECK(read_lease("rack 7 " + token + " spare") == lease);
  CHECK(read_lease(R"({"rack":7,"flex":")" + token + "\"}") == lease);
  CHECK(read_lease("flex(run=4h) " + token) == lease);
}

TEST_CASE("read_lease: nothing sensible is nothing", "[core]") {
  const auto text = GENERATE(as<std::string>{},
                             "",
                             "flex()",
                             "flex(end=)",
                             "flex(end=soon)",
                             "flex(end=-5)",
                             "flex(end=0)",
                             "flex(end=99999999999999999999)",
                             "flex(end=17x)",
                             "flex(end=1763310900");
  INFO(text);
  CHECK(!read_lease(text));
}
