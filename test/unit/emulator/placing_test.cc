// SPDX-License-Identifier: GPL-2.0-or-later
// VMs of no group.
#include "test/support/catch.h"
#include "test/unit/emulator/world_fixture.h"

using namespace flex::emulator;  // NOLINT(google-build-using-namespace)

namespace {

Json bulk(const std::vector<std::string>& names, int least, Json change = Json::object()) {
  Json body{
      {"count", std::to_string(names.size())},
      {"minCount", std::to_string(least)},
      {"sourceInstanceTemplate", "global/instanceTemplates/t"},
      {"instanceProperties",
       {{"description", "mark"},
        {"scheduling",
         {{"maxRunDuration", {{"seconds", "60"}}}, {"instanceTerminationAction", "DELETE"}}}}},
      {"locationPolicy",
       {{"targetShape", "ANY_SINGLE_ZONE"},
        {"zones", {{{"zone", "zones/us-central1-a"}}, {{"zone", "zones/us-central1-b"}}}}}}};
  for (const std::string& name : names) body["perInstanceProperties"][name] = Json::object();
  body.merge_patch(change);
  return body;
}

/// The operation of a bulkInsert, ended.
Operation run(Cloud& cloud, const Json& body) {
  const Reply reply = cloud.call("POST", "/instances/bulkInsert", body);
  REQUIRE(reply.status == 200);
  cloud.pass(1);
  return cloud.world.operations.at("p/regions/us-central1/" + text_of(reply.body, "name"));
}

Json status_in(const Operation& operation, const std::string& zone) {
  return member(member(operation.metadata, "perLocationStatus"), "zones/" + zone);
}

}  // namespace

TEST_CASE("placing: all VMs in the zone that takes them, with their own end and mark") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 2}};
  const Operation operation = run(cloud, bulk({"n1", "n2"}, 2));
  CHECK(operation.error.is_null());
  REQUIRE(cloud.world.vms.contains("p/zones/us-central1-b/n1"));
  const Json vm = to_json(cloud.world, cloud.world.vms.at("p/zones/us-central1-b/n1"));
  CHECK(vm["description"] == "mark");
  CHECK(vm["scheduling"]["maxRunDuration"]["seconds"] == "60");
  // The template's word where the call says nothing.
  CHECK(vm["scheduling"]["provisioningModel"] == "FLEX_START");
  CHECK(vm["resourceStatus"]["scheduling"].contains("terminationTimestamp"));
  cloud.pass(2);
  CHECK(cloud.world.hooks.size() == 2);
  CHECK(cloud.world.hooks[0].group.empty());
  cloud.pass(60);
  CHECK(cloud.world.vms.empty());
  CHECK(cloud.world.hooks.size() == 4);
}

TEST_CASE("placing: fewer than the least are none, and the operation says what became of them") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  const Operation operation = run(cloud, bulk({"n1", "n2", "n3", "n4"}, 4));
  CHECK(cloud.world.vms.empty());
  CHECK(operation.error["errors"][0]["code"] == "VM_MIN_COUNT_NOT_REACHED");
  CHECK(operation.error["errors"][1]["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS");
  const Json status = status_in(operation, "us-central1-a");
  CHECK(status["targetVmCount"] == 4);
  CHECK(status["createdVmCount"] == 1);
  CHECK(status["failedToCreateVmCount"] == 3);
  CHECK(status["deletedVmCount"] == 1);
}

TEST_CASE("placing: as many as there is room for, if the least are reached") {
  Cloud cloud;
  cloud.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 3}};
  const Operation operation = run(cloud, bulk({"n1", "n2", "n3", "n4"}, 1));
  CHECK(operation.error.is_null());
  CHECK(cloud.world.vms.size() == 3);
  CHECK(status_in(operation, "us-central1-b")["failedToCreateVmCount"] == 1);
}

TEST_CASE("placing: a name is taken in its zone only") {
  Cloud cloud;
  cloud.world.make_vm({.project = "p", .zone = "us-central1-a", .name = "n1"});
  CHECK(run(cloud, bulk({"n1"}, 1)).error.is_null());
  CHECK(cloud.world.vms.contains("p/zones/us-central1-b/n1"));
  const Operation again = run(cloud, bulk({"n1"}, 1));
  CHECK(again.error["errors"][1]["code"] == "RESOURCE_ALREADY_EXISTS");
  CHECK(cloud.world.vms.size() == 2);
}

TEST_CASE("placing: a quota bounds them, too") {
  const int least = GENERATE(1, 3);
  Cloud cloud;
  cloud.world.settings.quota["INSTANCES"] = 2;
  const Operation operation = run(cloud, bulk({"n1", "n2", "n3"}, least));
  CHECK(cloud.world.vms.size() == (least == 1 ? 2 : 0));
  CHECK(operation.error.is_null() == (least == 1));
  if (least == 3) CHECK(operation.error["errors"][1]["code"] == "QUOTA_EXCEEDED");
}

TEST_CASE("placing: what makes no sense is refused at once") {
  Cloud cloud;
  const auto status = [&](const Json& change) {
    return cloud.call("POST", "/instances/bulkInsert", bulk({"n1"}, 1, change)).status;
  };
  CHECK(status({{"minCount", "2"}}) == 400);
  CHECK(status({{"minCount", "0"}}) == 400);
  CHECK(status({{"count", "2"}}) == 400);
  CHECK(status({{"sourceInstanceTemplate", "nope"}}) == 400);
  CHECK(status({{"locationPolicy", {{"zones", {{{"zone", "zones/mars1-a"}}}}}}}) == 400);
  const Json shortest{{"scheduling", {{"maxRunDuration", {{"seconds", "29"}}}}}};
  CHECK(status({{"instanceProperties", shortest}}) == 400);
  CHECK(cloud.world.operations.empty());
}

TEST_CASE("placing: zones that are only preferred leave the others open, denied ones do not") {
  Cloud cloud;
  cloud.world.settings.capacity = {
      {"us-central1-a", 0}, {"us-central1-b", 0}, {"us-central1-c", 1}, {"us-central1-f", 0}};
  const Json allow{{"locations", {{"zones/us-central1-a", {{"preference", "ALLOW"}}}}}};
  const Json deny{{"locations", {{"zones/us-central1-c", {{"preference", "DENY"}}}}}};
  const auto change = [](Json policy) {
    policy["zones"] = nullptr;
    return Json{{"locationPolicy", std::move(policy)}};
  };
  CHECK_FALSE(run(cloud, bulk({"n1"}, 1, change(deny))).error.is_null());
  CHECK(run(cloud, bulk({"n1"}, 1, change(allow))).error.is_null());
}

TEST_CASE("policies: an operation that fails leaves things as they were") {
  Cloud cloud;
  const auto fail_all = [&] {
    for (auto& [key, operation] : cloud.world.operations)
      operation.fault = error_json("INTERNAL_ERROR", "no");
    cloud.pass(1);
  };
  const Json body{{"name", "w"}, {"workloadPolicy", {{"type", "HIGH_THROUGHPUT"}}}};
  static_cast<void>(cloud.call("POST", "/resourcePolicies", body));
  fail_all();
  CHECK(cloud.world.policies.empty());
  static_cast<void>(cloud.call("POST", "/resourcePolicies", body));
  cloud.pass(1);
  static_cast<void>(cloud.call("DELETE", "/resourcePolicies/w"));
  fail_all();
  CHECK(cloud.world.policies.size() == 1);
}

TEST_CASE("policies: a group needs its policy, and keeps it") {
  Cloud cloud;
  const Json change{
      {"resourcePolicies", {{"workloadPolicy", "regions/us-central1/resourcePolicies/w"}}}};
  cloud.make_group("g", change);
  CHECK(cloud.world.groups.empty());
  static_cast<void>(
      cloud.call("POST",
                 "/resourcePolicies",
                 Json{{"name", "w"}, {"workloadPolicy", {{"type", "HIGH_THROUGHPUT"}}}}));
  cloud.make_group("g", change);
  REQUIRE(cloud.world.groups.size() == 1);
  CHECK(cloud.call("DELETE", "/resourcePolicies/w").status == 400);
  static_cast<void>(cloud.call("DELETE", "/instanceGroupManagers/g"));
  cloud.pass(1);
  CHECK(cloud.call("DELETE", "/resourcePolicies/w").status == 200);
  cloud.pass(1);
  CHECK(cloud.world.policies.empty());
}
