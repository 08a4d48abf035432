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

TEST_CASE("fake_cloud: VMs asked for one by one wait until they are served", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  cloud.insert_group({.name = {"g"}, .kind = GroupKind::Individual}, seen.keep());
  cloud.create_instances({"g"}, std::vector<NodeName>{{"n1"}, {"n2"}}, seen.keep());
  cloud.run();
  REQUIRE(*seen.last);
  CHECK(cloud.find_instance("g", "n1")->is_queued());
  cloud.serve_instances("g", {"n1"}, cloud.now + 1h);
  CHECK(cloud.find_instance("g", "n1")->terminates == cloud.now + 1h);
  CHECK(cloud.find_instance("g", "n2")->is_queued());
  cloud.create_instances({"g"}, std::vector<NodeName>{{"n2"}, {"n3"}}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Precondition);
  CHECK(cloud.find_instance("g", "n3") == nullptr);
  // By name: it is in no request.
  cloud.delete_instances({"g"}, std::vector<Instance>{{.name = {"n2"}}}, seen.keep());
  cloud.run();
  CHECK(cloud.find_instance("g", "n2") == nullptr);
  CHECK(cloud.find_instance("g", "n1") != nullptr);
}

TEST_CASE("fake_cloud: a group of requests refuses VMs one by one", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  cloud.add_group("g");
  cloud.create_instances({"g"}, std::vector<NodeName>{{"n1"}}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Invalid);
}

TEST_CASE("fake_cloud: VMs of no group come with their mark and their end", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  const std::string mark = ownership_mark("hpc", "h4d");
  cloud.bulk_insert({.description = mark, .nodes = {{"n1"}, {"n2"}}, .run_duration = 1h},
                    seen.keep());
  cloud.add_loose("other", ownership_mark("hpc2", "h4d"));
  std::optional<Result<std::vector<Instance>>> vms;
  cloud.fetch_loose_instances("hpc", {}, [&](auto found) { vms = std::move(found); });
  cloud.run();
  REQUIRE(vms);
  REQUIRE((*vms)->size() == 2);
  CHECK((**vms)[0].description == mark);
  CHECK((**vms)[0].terminates == cloud.now + 1h);
  cloud.delete_instances({}, **vms, seen.keep());
  cloud.run();
  CHECK((*seen.last)->zone == "test-region1-a");
  CHECK(cloud.find_loose("n1") == nullptr);
  CHECK(cloud.find_loose("other") != nullptr);
}

TEST_CASE("fake_cloud: fewer VMs than the least are none, and the operation says so", "[gce]") {
  FakeCloud cloud;
  std::optional<Result<Done>> done;
  const auto ask = [&](std::size_t least) {
    cloud.bulk_insert({.nodes = {{"n1"}, {"n2"}}, .min_count = least}, [&](auto operation) {
      cloud.wait_operation(*operation, [&](auto result) { done = std::move(result); });
    });
    cloud.run();
  };
  cloud.bulk_capacity = 1;
  ask(2);
  REQUIRE(done);
  CHECK(done->error().kind == ErrorKind::NoCapacity);
  CHECK(cloud.loose.empty());
  ask(1);
  CHECK(*done);
  CHECK(cloud.loose.size() == 1);
}

TEST_CASE("fake_cloud: a bulk_insert that is held is under way until it is finished", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  std::vector<std::size_t> sizes;
  const auto look = [&] {
    cloud.fetch_bulk_operations([&](auto found) { sizes.push_back(found->size()); });
    cloud.run();
  };
  cloud.is_bulk_held = true;
  cloud.bulk_insert({.nodes = {{"n1"}}}, seen.keep());
  look();
  CHECK(cloud.loose.empty());
  cloud.finish_bulk();
  look();
  CHECK(sizes == std::vector<std::size_t>{1, 0});
  CHECK(cloud.loose.size() == 1);
}

TEST_CASE("fake_cloud: a policy is deleted when no group uses it", "[gce]") {
  FakeCloud cloud;
  Seen seen;
  cloud.insert_group({.name = {"g"}, .policy = "p"}, seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Invalid);
  cloud.insert_policy({.name = "p", .max_distance = 2}, seen.keep());
  cloud.insert_group({.name = {"g"}, .policy = "p"}, seen.keep());
  cloud.delete_policy("p", seen.keep());
  cloud.run();
  CHECK(seen.last->error().kind == ErrorKind::Precondition);
  cloud.delete_group({"g"}, seen.keep());
  cloud.delete_policy("p", seen.keep());
  cloud.run();
  CHECK(*seen.last);
  CHECK(cloud.policies.empty());
  CHECK(cloud.policy_specs.size() == 1);
}
