// SPDX-License-Identifier: GPL-2.0-or-later
// Faults as clients of the whole Front meet them.
#include "emulator/front.h"
#include "test/support/catch.h"

#include <atomic>
#include <functional>
#include <thread>

using namespace flex::emulator;  // NOLINT(google-build-using-namespace)

namespace {

/// A Front that knows one group, a call of it, and how the call ends.
struct Held {
  explicit Held(const std::string& kind) {
    REQUIRE(post("/_emulator/config", R"({"operation_ms": 0, "templates": [{"name": "t"}]})") ==
            200);
    REQUIRE(post("/_emulator/faults", Json{{"kind", kind}, {"after", 1}}.dump()) == 200);
    REQUIRE(call(group("first"), {}).status == 200);
  }

  static HttpIn group(const std::string& name) {
    const Json body{
        {"name", name}, {"targetSize", 0}, {"instanceTemplate", "global/instanceTemplates/t"}};
    return {.verb = "POST",
            .path = "/compute/v1/projects/p/regions/us-central1/instanceGroupManagers",
            .authorization = "Bearer t",
            .body = body.dump()};
  }

  HttpOut call(HttpIn in, std::function<bool()> is_gone) {
    in.is_gone = std::move(is_gone);
    return front.handle(in);
  }

  int post(const std::string& path, const std::string& body) {
    return front.handle({.verb = "POST", .path = path, .body = body}).status;
  }

  Json get(const std::string& what) {
    HttpIn in{.verb = "GET", .path = "/_emulator/" + what.substr(0, what.find('?'))};
    if (what.find('?') != std::string::npos)
      in.query = parse_query(what.substr(what.find('?') + 1));
    return Json::parse(front.handle(in).body);
  }

  Front front{Settings{}};
};

}  // namespace

TEST_CASE("faults: a call is held before or after it acts, until its client is gone") {
  const auto [kind, groups] =
      GENERATE(table<std::string, std::size_t>({{"hold_before", 1}, {"hold_after", 2}}));
  INFO(kind);
  Held held(kind);
  std::atomic<bool> is_gone = false;
  HttpOut out;
  std::thread client(
      [&] { out = held.call(Held::group("second"), [&is_gone] { return is_gone.load(); }); });
  CHECK(held.get("wait?held=1&timeout=10").at("reached") == true);
  // Others are served meanwhile, and the fault has had its one call.
  CHECK(held.get("state").at("groups").size() == groups);
  CHECK(held.get("faults").at(0).at("hits") == 1);
  CHECK(held.get("faults").at(0).at("seen") == 2);
  CHECK(held.call(Held::group("first"), {}).status == 409);
  is_gone = true;
  client.join();
  CHECK(out.is_dropped);
  CHECK(held.get("wait?held=0&timeout=10").at("reached") == true);
  CHECK(held.get("state").at("groups").size() == groups);
  CHECK(held.get("journal").back().at("status") == 0);
  CHECK(held.get("journal").back().at("fault") == kind);
}

TEST_CASE("faults: calls of the control and for tokens are not counted") {
  Held held("503");
  const Json before = held.get("faults");
  static_cast<void>(held.get("state"));
  CHECK(held.post("/token",
                  "grant_type=refresh_token&refresh_token=r&client_id=c&client_secret=s") == 200);
  static_cast<void>(held.front.handle({.verb = "GET",
                                       .path = "/computeMetadata/v1/project/project-id",
                                       .metadata_flavor = "Google"}));
  CHECK(held.get("faults") == before);
  CHECK(before.at(0).at("seen") == 1);
}
