// SPDX-License-Identifier: GPL-2.0-or-later
// The life of resize requests, groups and VMs.
#include "test/support/catch.h"
#include "test/unit/emulator/world_fixture.h"

#include <cmath>

using namespace flex::emulator;  // NOLINT(google-build-using-namespace)

TEST_CASE("requests: a request is CREATING, then ACCEPTED, then has all its VMs at once") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  cloud.make_group("g");
  REQUIRE(cloud.ask("g", "r", {"n1", "n2"}).status == 200);
  CHECK(cloud.request("g", "r").state == RequestState::Creating);
  CHECK(cloud.group("g").target_size == 2);
  cloud.pass(0.9);
  CHECK(cloud.request("g", "r").state == RequestState::Creating);
  cloud.pass(0.2);
  CHECK(cloud.request("g", "r").state == RequestState::Accepted);
  CHECK(cloud.world.vms.empty());
  CHECK_THAT(cloud.request("g", "r").last_attempt.dump(),
             ContainsSubstring("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"));
  cloud.world.settings.capacity["us-central1-b"] = 2;
  cloud.world.capacity_changed();
  cloud.pass(0);
  CHECK(cloud.request("g", "r").state == RequestState::Succeeded);
  REQUIRE(cloud.world.vms.size() == 2);
  CHECK(cloud.world.vms.begin()->second.zone == "us-central1-b");
  CHECK(cloud.world.vms.begin()->second.status == VmStatus::Provisioning);
  cloud.pass(1);
  CHECK(cloud.world.vms.begin()->second.status == VmStatus::Staging);
  cloud.pass(1);
  CHECK(cloud.world.vms.begin()->second.status == VmStatus::Running);
  CHECK(cloud.world.hooks.size() == 2);
}

TEST_CASE("requests: the history tells of each request and VM when it was there and how it ended") {
  Cloud cloud;
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1"}));
  cloud.pass(2);
  REQUIRE(cloud.world.vms.size() == 1);
  cloud.world.end_vm(std::string(cloud.world.vms.begin()->first), VmEnd::Vanished);
  const Json dump = cloud.world.history.dump();
  const Json& events = dump["events"];
  REQUIRE(events.size() == 4);
  CHECK(events[0]["event"] == "request_made");
  CHECK(events[0]["nodes"] == Json::array({"n1"}));
  CHECK(events[1]["event"] == "vm_made");
  CHECK(events[1]["request"] == "r");
  CHECK(events[1]["group"] == "g");
  CHECK(events[1]["run_seconds"] == events[0]["run_seconds"]);
  CHECK(events[2]["event"] == "request_ended");
  CHECK(events[2]["state"] == "SUCCEEDED");
  CHECK(events[3]["event"] == "vm_gone");
  CHECK(events[3]["how"] == "vanished");
  CHECK(events[3]["id"] == events[1]["id"]);
  CHECK(dump["dropped"] == 0);
}

TEST_CASE("requests: members that wait have no status or are PENDING, until they have a zone") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 0}, {"us-central1-b", 0}};
  cloud.make_group("g");
  REQUIRE(cloud.ask("g", "r", {"n1", "n2"}).status == 200);
  const auto [setting, pending] = GENERATE(table<QueuedStatus, std::size_t>(
      {{QueuedStatus::None, 0}, {QueuedStatus::Mixed, 1}, {QueuedStatus::Pending, 2}}));
  cloud.world.settings.queued_status = setting;
  const auto count = [&](const std::string& status) {
    const Json listed = cloud.call("POST", "/instanceGroupManagers/g/listManagedInstances").body;
    std::size_t found = 0;
    for (const Json& item : listed.at("managedInstances"))
      if (text_of(item, "instanceStatus") == status) ++found;
    return found;
  };
  cloud.pass(2);
  CHECK(count("PENDING") == pending);
  CHECK(count("") == 2 - pending);
  cloud.world.settings.capacity["us-central1-b"] = 2;
  cloud.world.capacity_changed();
  cloud.pass(0);
  CHECK(count("PROVISIONING") == 2);
}

TEST_CASE("requests: capacity spread over two zones serves no request") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 1}};
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1", "n2"}));
  cloud.pass(2);
  CHECK(cloud.request("g", "r").state == RequestState::Accepted);
  CHECK(cloud.world.vms.empty());
}

TEST_CASE("requests: a smaller request passes one that does not fit") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "large", {"n1", "n2"}));
  static_cast<void>(cloud.ask("g", "small", {"n3"}));
  cloud.pass(2);
  CHECK(cloud.request("g", "large").state == RequestState::Accepted);
  CHECK(cloud.request("g", "small").state == RequestState::Succeeded);
}

TEST_CASE("requests: cancelling one rolls back its own entries and leaves the other's alone") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 0}, {"us-central1-b", 0}};
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r1", {"n1", "n2"}));
  static_cast<void>(cloud.ask("g", "r2", {"n3"}));
  const std::string path = "/instanceGroupManagers/g/resizeRequests/";
  CHECK(cloud.call("POST", path + "r1/cancel").status == 412);
  cloud.pass(2);
  CHECK(cloud.call("DELETE", path + "r1").status == 412);
  CHECK(cloud.call("POST", path + "r1/cancel").status == 200);
  // Capacity that comes while it is being cancelled is not for it any more.
  cloud.world.settings.capacity["us-central1-a"] = 2;
  cloud.world.capacity_changed();
  cloud.pass(2);
  CHECK(cloud.request("g", "r1").state == RequestState::Cancelled);
  CHECK(cloud.request("g", "r2").state == RequestState::Succeeded);
  CHECK(cloud.group("g").target_size == 1);
  CHECK(cloud.group("g").members.size() == 1);
  CHECK(cloud.call("POST", path + "r1/cancel").status == 412);
  CHECK(cloud.call("DELETE", path + "r1").status == 200);
}

TEST_CASE("requests: the estimate is the lease end that frees enough") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 2}, {"us-central1-b", 0}};
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r1", {"n1"}, 600));
  static_cast<void>(cloud.ask("g", "r2", {"n2"}, 6000));
  cloud.pass(1);
  static_cast<void>(cloud.ask("g", "r3", {"n3"}, 600));
  cloud.pass(1);
  const Vm& vm = cloud.world.vms.at("p/zones/us-central1-a/n1");
  CHECK_THAT(cloud.request("g", "r3").last_attempt.dump(),
             ContainsSubstring(format_utc(cloud.world.clock.to_wall(vm.ends))));
  cloud.pass(600);
  CHECK(cloud.request("g", "r3").state == RequestState::Succeeded);
}

TEST_CASE("requests: the quota of active requests is counted per region and freed") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 0}, {"us-central1-b", 0}};
  cloud.world.settings.quota["ACTIVE_RESIZE_REQUESTS"] = 1;
  cloud.make_group("g");
  CHECK(cloud.ask("g", "r1", {"n1"}).status == 200);
  CHECK(cloud.ask("g", "r2", {"n2"}).status == 403);
  cloud.pass(2);
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/resizeRequests/r1/cancel"));
  cloud.pass(2);
  CHECK(cloud.ask("g", "r2", {"n2"}).status == 200);
}

TEST_CASE("requests: a short quota of VMs keeps a request waiting and names the quota") {
  Cloud cloud;
  cloud.world.settings.quota["INSTANCES"] = 1;
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1", "n2"}));
  cloud.pass(2);
  CHECK(cloud.request("g", "r").state == RequestState::Accepted);
  CHECK_THAT(cloud.request("g", "r").last_attempt.dump(), ContainsSubstring("QUOTA_EXCEEDED"));
  CHECK_THAT(cloud.request("g", "r").last_attempt.dump(), ContainsSubstring("INSTANCES"));
}

TEST_CASE("requests: a group that is not ready, repairs, or spreads takes none") {
  Cloud cloud;
  cloud.make_group("repairs",
                   {{"instanceLifecyclePolicy", {{"defaultActionOnFailure", "REPAIR"}}}});
  cloud.make_group("spreads", {{"distributionPolicy", {{"targetShape", "EVEN"}}}});
  CHECK(cloud.ask("repairs", "r", {"n1"}).status == 400);
  CHECK(cloud.ask("spreads", "r", {"n1"}).status == 400);
  CHECK(cloud.ask("nope", "r", {"n1"}).status == 404);
}

TEST_CASE("vms: a lease that ends shrinks the group, or leaves a dead entry when told so") {
  const bool is_kept = GENERATE(false, true);
  Cloud cloud;
  cloud.world.settings.keep_dead_entries = is_kept;
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1"}, 600));
  cloud.pass(1);
  cloud.pass(599);
  CHECK(cloud.world.vms.size() == 1);
  cloud.pass(2);
  CHECK(cloud.world.vms.empty());
  CHECK(cloud.group("g").members.size() == (is_kept ? 1 : 0));
  CHECK(cloud.group("g").target_size == (is_kept ? 1 : 0));
}

TEST_CASE("vms: time that runs faster ends leases sooner and says when by the wall") {
  Cloud cloud;
  cloud.world.clock.set_factor(60);
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1"}, 600));
  cloud.pass(1);
  const double ends = cloud.world.clock.to_wall(cloud.world.vms.begin()->second.ends);
  CHECK(std::abs(ends - (cloud.wall + 10)) < 0.001);
  cloud.pass(9);
  CHECK(cloud.world.vms.size() == 1);
  cloud.pass(1.1);
  CHECK(cloud.world.vms.empty());
}

TEST_CASE("vms: one that vanishes leaves its entry, and its name is not free") {
  Cloud cloud;
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r", {"n1"}));
  cloud.pass(5);
  cloud.world.end_vm("p/zones/us-central1-a/n1", VmEnd::Vanished);
  CHECK(cloud.group("g").members.size() == 1);
  CHECK(cloud.ask("g", "r2", {"n1"}).status == 400);
  const Json body{{"instances", {"n1"}}};
  CHECK(cloud.call("POST", "/instanceGroupManagers/g/deleteInstances", body).status == 200);
  cloud.pass(1);
  CHECK(cloud.group("g").members.empty());
  CHECK(cloud.ask("g", "r2", {"n1"}).status == 200);
}

TEST_CASE("groups: a name must be RFC 1035") {
  const std::string name =
      GENERATE(as<std::string>{}, "", "G", "1a", "a_b", "a-", std::string(64, 'a'));
  Cloud cloud;
  cloud.make_group(name);
  CHECK(cloud.world.groups.empty());
}

TEST_CASE("groups: deletion waits for active requests, then takes the VMs") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  cloud.make_group("g");
  static_cast<void>(cloud.ask("g", "r1", {"n1"}));
  cloud.pass(5);
  static_cast<void>(cloud.ask("g", "r2", {"n2"}));
  cloud.pass(1);
  CHECK(cloud.call("DELETE", "/instanceGroupManagers/g").status == 200);
  cloud.pass(60);
  CHECK(cloud.world.groups.size() == 1);
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/resizeRequests/r2/cancel"));
  cloud.pass(1);
  CHECK(cloud.world.groups.empty());
  CHECK(cloud.world.vms.empty());
}

TEST_CASE("groups: in INDIVIDUAL mode VMs come one by one, in BULK mode all or none") {
  const bool is_bulk = GENERATE(false, true);
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  cloud.make_group("g", {{"targetSizePolicy", {{"mode", is_bulk ? "BULK" : "INDIVIDUAL"}}}});
  const Json body{{"instances", {{{"name", "n1"}}, {{"name", "n2"}}}}};
  CHECK(cloud.call("POST", "/instanceGroupManagers/g/createInstances", body).status == 200);
  cloud.pass(1);
  CHECK(cloud.world.vms.size() == (is_bulk ? 0 : 1));
  cloud.world.settings.capacity["us-central1-a"] = 2;
  cloud.world.capacity_changed();
  cloud.pass(0);
  CHECK(cloud.world.vms.size() == 2);
}

TEST_CASE("groups: an entry that waits says why, and its name is given back when it is deleted") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 0}, {"us-central1-b", 0}};
  cloud.make_group("g", {{"targetSizePolicy", {{"mode", "INDIVIDUAL"}}}});
  const Json body{{"instances", {{{"name", "n1"}}, {{"name", "n2"}}}}};
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/createInstances", body));
  cloud.pass(1);
  CHECK_THAT(cloud.group("g").members.at("n1").error.dump(),
             ContainsSubstring("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"));
  const Json one{{"instances", {"n1"}}};
  CHECK(cloud.call("POST", "/instanceGroupManagers/g/deleteInstances", one).status == 200);
  cloud.world.settings.capacity["us-central1-b"] = 5;
  cloud.world.capacity_changed();
  cloud.pass(1);
  CHECK(cloud.world.vms.size() == 1);
  CHECK(cloud.group("g").members.size() == 1);
  CHECK(cloud.group("g").members.at("n2").error.is_null());
  CHECK(cloud.group("g").target_size == 1);
}

TEST_CASE("groups: an entry waits for quota and for its name, one by one") {
  Cloud cloud;
  cloud.world.settings.quota["INSTANCES"] = 2;
  cloud.make_group("g",
                   {{"targetSizePolicy", {{"mode", "INDIVIDUAL"}}},
                    {"distributionPolicy", {{"zones", {{{"zone", "zones/us-central1-a"}}}}}}});
  cloud.world.make_vm({.project = "p", .zone = "us-central1-a", .name = "n1"});
  const Json body{{"instances", {{{"name", "n1"}}, {{"name", "n2"}}, {{"name", "n3"}}}}};
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/createInstances", body));
  cloud.pass(1);
  const auto& members = cloud.group("g").members;
  CHECK(members.at("n2").error.is_null());
  CHECK_THAT(members.at("n1").error.dump(), ContainsSubstring("RESOURCE_ALREADY_EXISTS"));
  CHECK_THAT(members.at("n3").error.dump(), ContainsSubstring("QUOTA_EXCEEDED"));
  cloud.world.end_vm("p/zones/us-central1-a/n1", VmEnd::Deleted);
  cloud.pass(0);
  CHECK(cloud.world.vms.size() == 2);
}

TEST_CASE("groups: in any zone one by one, or all in the zone of the first") {
  const bool is_single = GENERATE(false, true);
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 1}};
  cloud.make_group(
      "g",
      {{"targetSizePolicy", {{"mode", "INDIVIDUAL"}}},
       {"distributionPolicy", {{"targetShape", is_single ? "ANY_SINGLE_ZONE" : "ANY"}}}});
  const Json body{{"instances", {{{"name", "n1"}}, {{"name", "n2"}}}}};
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/createInstances", body));
  cloud.pass(1);
  CHECK(cloud.world.vms.size() == (is_single ? 1 : 2));
}

TEST_CASE("groups: a creation whose operation fails leaves no entry") {
  Cloud cloud;
  cloud.make_group("g", {{"targetSizePolicy", {{"mode", "INDIVIDUAL"}}}});
  const Json body{{"instances", {{{"name", "n1"}}}}};
  static_cast<void>(cloud.call("POST", "/instanceGroupManagers/g/createInstances", body));
  for (auto& [key, operation] : cloud.world.operations)
    operation.fault = error_json("INTERNAL_ERROR", "no");
  cloud.pass(1);
  CHECK(cloud.group("g").members.empty());
  CHECK(cloud.group("g").target_size == 0);
  CHECK(cloud.world.vms.empty());
}
