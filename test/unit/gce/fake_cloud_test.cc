// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/fake_cloud.h"

#include "test/support/catch.h"

#include <optional>

using namespace flex;
using namespace std::chrono_literals;

namespace {

struct Seen {
  std::optional<Result<Operation>> last{};

  Then<Operation> keep() {
    return [this](Result<Operation> result) { last = std::move(result); };
  }
};

}  // namespace

TEST_CASE("fake_cloud: a request needs its group, and its name is taken once", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  const RequestSpec spec{.name = {"j1"}, .group = {"g"}, .nodes = {{"n1"}, {"n2"}}};
  cloud.insert_request(spec, seen.keep());
  CHECK_FALSE(seen.last);
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::NotFound);
  cloud.insert_group({.name = {"g"}}, seen.keep());
  cloud.insert_request(spec, seen.keep());
  cloud.run();
  REQUIRE(*seen.last);
  REQUIRE(cloud.find_instance("g", "n1") != nullptr);
  CHECK(cloud.find_instance("g", "n1")->is_queued());
  cloud.insert_request(spec, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::AlreadyExists);
  CHECK(cloud.count("insert_request") == 3);
}

TEST_CASE("fake_cloud: cancels what is queued and leaves what is served", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  cloud.add_group("g");
  cloud.add_request("g", "j1", {"n1"});
  cloud.add_request("g", "j2", {"n2"});
  cloud.serve("g", "j2");
  cloud.cancel_request({"g"}, {"j1"}, seen.keep());
  cloud.run();
  REQUIRE(*seen.last);
  CHECK(cloud.find_instance("g", "n1") == nullptr);
  cloud.cancel_request({"g"}, {"j2"}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Precondition);
  CHECK(cloud.find_instance("g", "n2")->status == InstanceStatus::Running);
}

TEST_CASE("fake_cloud: an error does nothing, a lost reply has acted", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  cloud.next_error("insert_group", {ErrorKind::Quota, "no"});
  cloud.lose_reply("insert_group");
  cloud.insert_group({.name = {"g"}}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Quota);
  CHECK(cloud.groups.empty());
  cloud.insert_group({.name = {"g"}}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Retry);
  CHECK(cloud.groups.contains("g"));
}

TEST_CASE("fake_cloud: an operation's error comes from waiting for it", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  std::optional<Result<Done>> done;
  cloud.next_operation_error("insert_group", {.code = "INVALID_ARGUMENT"});
  cloud.insert_group({.name = {"g"}}, [&](Result<Operation> operation) {
    REQUIRE(operation);
    cloud.wait_operation(*operation, [&](Result<Done> result) { done = std::move(result); });
  });
  cloud.run();
  REQUIRE(done);
  CHECK(done->error().kind == ErrorKind::Invalid);
  CHECK(cloud.groups.empty());
}

TEST_CASE("fake_cloud: timers come in order of time, without waiting", "[gce]") {
  FakeCloud cloud;
  std::string order;
  cloud.after(1h, [&] { order += 'b'; });
  cloud.after(1s, [&] { order += 'a'; });
  cloud.run();
  CHECK(order == "ab");
  CHECK(cloud.elapsed == 1h);
}

TEST_CASE("fake_cloud: a console is what the test says", "[gce]") {
  FakeCloud cloud;
  cloud.serial_outputs["n1"] = "up";
  std::vector<Result<std::string>> texts;
  const auto keep = [&](const Result<std::string>& text) { texts.push_back(text); };
  cloud.fetch_serial_output({.name = {"n1"}, .url = "u"}, keep);
  cloud.fetch_serial_output({.name = {"n2"}, .url = "u"}, keep);
  cloud.fetch_serial_output({.name = {"n1"}}, keep);
  cloud.run();
  REQUIRE(texts.size() == 3);
  CHECK(*texts[0] == "up");
  CHECK(texts[1].error().kind == ErrorKind::NotFound);
  CHECK(texts[2].error().kind == ErrorKind::Invalid);
  CHECK(cloud.calls[0].nodes == std::vector<std::string>{"n1"});
}
