// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/cloud_facts.h"
#include "test/support/catch.h"

#include <nlohmann/json.hpp>

#include <set>

namespace flex {
namespace {

TEST_CASE("facts: a template", "[gce]") {
  const auto facts = parse_template(R"({
    "name": "flex", "properties": {
      "machineType": "zones/us-central1-a/machineTypes/a3-highgpu-8g",
      "scheduling": {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": "86400"},
                     "instanceTerminationAction": "DELETE", "onHostMaintenance": "TERMINATE",
                     "preemptible": true},
      "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
      "resourcePolicies": ["projects/p/regions/r/resourcePolicies/near"],
      "networkInterfaces": [{"networkIP": "10.0.0.7", "accessConfigs": [{"natIP": "203.0.113.7"}, {}]}],
      "guestAccelerators": [{"acceleratorType": "projects/p/zones/z/acceleratorTypes/nvidia-l4",
                             "acceleratorCount": 2}],
      "serviceAccounts": [{"email": "a@b"}]}})");
  REQUIRE(facts);
  CHECK(facts->machine_type == "a3-highgpu-8g");
  CHECK(facts->provisioning_model == "FLEX_START");
  CHECK(facts->termination_action == "DELETE");
  CHECK(facts->on_host_maintenance == "TERMINATE");
  CHECK(facts->reservation == "NO_RESERVATION");
  CHECK(facts->is_preemptible);
  CHECK(facts->max_run_duration == Seconds{86400});
  CHECK(facts->policies == std::vector<std::string>{"near"});
  CHECK(facts->fixed_addresses == std::vector<std::string>{"10.0.0.7", "203.0.113.7"});
  REQUIRE(facts->accelerators.size() == 1);
  CHECK(facts->accelerators[0].type == "nvidia-l4");
  CHECK(facts->accelerators[0].count == 2);
  CHECK(facts->service_accounts == std::vector<std::string>{"a@b"});
  const auto bare = parse_template("{}");
  REQUIRE(bare);
  CHECK_FALSE(bare->max_run_duration);
  CHECK_FALSE(parse_template("[]"));
  CHECK_FALSE(parse_template(R"({"properties": {"resourcePolicies": [7]}})"));
}

TEST_CASE("facts: region, zone, machine type, project, errors of a group", "[gce]") {
  const auto region = parse_region(R"({"name": "r", "status": "UP",
    "zones": ["https://x/projects/p/zones/r-a", "r-b"],
    "quotas": [{"metric": "CPUS", "limit": 72.0, "usage": 3}, {"metric": "A2_CPUS", "limit": 12}]})");
  REQUIRE(region);
  CHECK(region->zones == std::vector<std::string>{"r-a", "r-b"});
  REQUIRE(region->quota("CPUS") != nullptr);
  CHECK(region->quota("CPUS")->limit == 72.0);
  CHECK(region->quota("CPUS")->usage == 3.0);
  CHECK(region->quota("NONE") == nullptr);
  CHECK_FALSE(parse_region(R"({"quotas": [{"limit": "many"}]})"));

  const auto zone =
      parse_zone(R"({"name": "r-a", "region": "projects/p/regions/r", "status": "DOWN"})");
  REQUIRE(zone);
  CHECK(zone->region == "r");
  CHECK(zone->status == "DOWN");

  const auto machine = parse_machine_type(R"({"name": "a2", "guestCpus": 12,
    "accelerators": [{"guestAcceleratorType": "nvidia-tesla-a100", "guestAcceleratorCount": 1}],
    "deprecated": {"state": "OBSOLETE"}})");
  REQUIRE(machine);
  CHECK(machine->cpus == 12);
  CHECK(machine->accelerators.at(0).type == "nvidia-tesla-a100");
  CHECK(machine->deprecated == "OBSOLETE");

  const auto project = parse_project(R"({"name": "p", "id": "7",
    "defaultServiceAccount": "42-compute@developer.gserviceaccount.com"})");
  REQUIRE(project);
  CHECK(project->number == "42");
  const auto custom = parse_project(R"({"name": "p", "defaultServiceAccount": "own@p.iam"})");
  REQUIRE(custom);
  CHECK(custom->number.empty());

  const auto errors =
      parse_group_errors(R"({"items": [{"error": {"code": "X", "message": "one"}}]})");
  REQUIRE(errors);
  CHECK(*errors == std::vector<std::string>{"one"});
}

TEST_CASE("facts: the permission that a refusal names", "[gce]") {
  CHECK(named_permission("Required 'compute.instances.create' permission for 'projects/p'") ==
        "compute.instances.create");
  CHECK(named_permission("x: Required 'compute' permission for 'projects/p'").empty());
  CHECK(named_permission("Required 'compute.x; rm' permission").empty());
  CHECK(named_permission("Required '").empty());
  CHECK(named_permission("").empty());
}

TEST_CASE("facts: a token that is not for Compute Engine", "[gce]") {
  const auto lacks = [](std::string what, std::string code) {
    return lacks_scope(Error{ErrorKind::Denied, std::move(what), std::move(code)});
  };
  CHECK(lacks("Insufficient Permission", "insufficientPermissions"));
  CHECK(lacks("x", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"));
  CHECK(lacks("x: Request had insufficient authentication scopes.", "PERMISSION_DENIED"));
  CHECK_FALSE(lacks("Required 'compute.regions.get' permission for 'x'", "forbidden"));
  CHECK_FALSE(lacks_scope(Error{ErrorKind::Retry, "x", "insufficientPermissions"}));
}

TEST_CASE("facts: probes ask only for what is used", "[gce]") {
  const auto names = [](const ProbeWish& wish) {
    std::set<std::string> permissions;
    for (const Probe& probe : permission_probes(wish)) permissions.insert(probe.permission);
    return permissions;
  };
  ProbeWish wish{.region = "r", .zone = "r-a"};
  CHECK(names(wish) == std::set<std::string>{"compute.instanceGroupManagers.list",
                                             "compute.instanceGroupManagers.get",
                                             "compute.instances.getSerialPortOutput",
                                             "compute.regionOperations.get",
                                             "compute.instanceGroupManagers.create",
                                             "compute.instanceGroupManagers.delete",
                                             "compute.instanceGroupManagers.update",
                                             "compute.instances.delete"});
  wish.has_writes = false;
  wish.has_placement = wish.has_loose = true;
  for (const Probe& probe : permission_probes(wish)) {
    CHECK(probe.method == "GET");
    CHECK_FALSE(probe.is_write);
  }
  CHECK(names(wish).contains("compute.resourcePolicies.list"));
  wish.has_writes = true;
  CHECK(names(wish).contains("compute.resourcePolicies.create"));
  CHECK(names(wish).contains("compute.instances.create"));
}

TEST_CASE("facts: a probe that were done all the same would do no harm, and is to be found",
          "[gce]") {
  int creations = 0;
  for (const Probe& probe : permission_probes(
           {.region = "r", .zone = "r-a", .has_placement = true, .has_loose = true})) {
    CAPTURE(probe.permission);
    CHECK(probe.makes.empty() == !probe.permission.ends_with(".create"));
    CHECK(probe.undo.empty() == probe.makes.empty());
    if (probe.permission.ends_with(".create")) ++creations;
    if (probe.permission != "compute.instances.create") continue;
    const auto body = nlohmann::json::parse(probe.body);
    CHECK(body["count"] == "1");
    CHECK_FALSE(body.contains("minCount"));
    CHECK(body["namePattern"] == "flex-doctor-#");
    const auto& scheduling = body["instanceProperties"]["scheduling"];
    CHECK(scheduling["maxRunDuration"]["seconds"] == "30");
    CHECK(scheduling["instanceTerminationAction"] == "DELETE");
  }
  CHECK(creations == 3);
}

}  // namespace
}  // namespace flex
