// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/wire.h"

#include "lib/core/duration.h"
#include "test/support/catch.h"
#include "test/unit/gce/data.h"

#include <nlohmann/json.hpp>

#include <tuple>

using namespace flex;
using nlohmann::json;

namespace {

constexpr Home kHome{"p1", "us-central1"};

}  // namespace

TEST_CASE("wire: reads a page of groups", "[gce]") {
  const auto page = parse_group_page(recorded("groups_1.json"));
  REQUIRE(page);
  REQUIRE(page->items.size() == 1);
  const Group& group = page->items[0];
  CHECK(group.name.text == "hpc-a3u");
  CHECK(group.description == "slurm-flex-start cluster=hpc nodeset=a3u");
  CHECK_THAT(group.instance_template, EndsWith("/instanceTemplates/a3u-flex"));
  CHECK(group.target_size == 4);
  CHECK_FALSE(group.is_stable);
  CHECK(format_time(group.created) == "2026-08-02T10:04:05Z");
  CHECK(page->next == "CgA=+/&x");
}

TEST_CASE("wire: fields that are missing have defaults", "[gce]") {
  const auto page = parse_group_page(recorded("groups_2.json"));
  REQUIRE(page);
  REQUIRE(page->items.size() == 2);
  CHECK(page->items[1].is_stable);
  CHECK(page->items[1].target_size == 0);
  CHECK(page->next.empty());
  CHECK(parse_group_page("{}")->items.empty());
  CHECK(parse_instance_page("{}")->items.empty());
  CHECK(parse_request_page("{\"items\":null}", {"g"})->items.empty());
}

TEST_CASE("wire: a list that says it is incomplete is an error", "[gce]") {
  const auto page = parse_group_page(recorded("groups_partial.json"));
  REQUIRE_FALSE(page);
  CHECK(page.error().kind == ErrorKind::Retry);
  CHECK(page.error().code == "INCOMPLETE_LIST");
  const auto requests = parse_request_page(R"({"items":[],"unreachables":["regions/x"]})", {"g"});
  REQUIRE_FALSE(requests);
  CHECK(requests.error().kind == ErrorKind::Retry);
}

TEST_CASE("wire: reads how a group's VMs come and how near they are", "[gce]") {
  const auto group = parse_group(R"({"name": "g",
    "description": "slurm-flex-start cluster=hpc nodeset=a3u kind=individual step=2 job=7",
    "resourcePolicies": {"workloadPolicy": "https://h/p/regions/r/resourcePolicies/hpc-a3u-j7"}})");
  REQUIRE(group);
  CHECK(group->kind == GroupKind::Individual);
  CHECK(group->step == 2);
  CHECK(group->policy == "hpc-a3u-j7");
  // Google's default, which it may fill in.
  const auto plain = parse_group(R"({"name": "g", "targetSizePolicy": {"mode": "INDIVIDUAL"}})");
  REQUIRE(plain);
  CHECK(plain->kind == GroupKind::Queued);
  CHECK(plain->policy.empty());
}

TEST_CASE("wire: reads which of the things of a name it is", "[gce]") {
  const auto group = parse_group(R"({"name": "g", "id": "4711"})");
  REQUIRE(group);
  CHECK(group->id == "4711");
  const auto requests = parse_request_page(R"({"items":[{"name": "r", "id": "4712"}]})", {"g"});
  REQUIRE(requests);
  CHECK(requests->items.at(0).id == "4712");
  const auto policies = parse_policy_page(
      R"({"items":[{"name": "p", "id": "4713", "workloadPolicy": {"type": "X"}}]})");
  REQUIRE(policies);
  CHECK(policies->items.at(0).id == "4713");
  CHECK(parse_group(R"({"name": "g"})")->id.empty());
  for (const std::string& fields :
       {group_page_fields(), request_page_fields(), policy_page_fields()})
    CHECK_THAT(fields, ContainsSubstring("name,id,"));
}

TEST_CASE("wire: reads the VMs of a zone", "[gce]") {
  const auto page = parse_loose_instance_page(recorded("loose_instances.json"));
  REQUIRE(page);
  REQUIRE(page->items.size() == 2);
  const Instance& vm = page->items[0];
  CHECK(vm.name.text == "h4d-0");
  CHECK(vm.id == "7001");
  CHECK(vm.status == InstanceStatus::Running);
  CHECK(vm.action == InstanceAction::None);
  CHECK_THAT(vm.url, EndsWith("/zones/us-central1-a/instances/h4d-0"));
  CHECK(vm.description == "slurm-flex-start cluster=hpc nodeset=h4d job=7");
  REQUIRE(vm.terminates);
  CHECK(format_time(*vm.terminates) == "2026-11-17T18:00:00Z");
  CHECK(page->items[1].is_leaving());
  CHECK_FALSE(page->items[1].terminates);
  CHECK(page->next == "n2");
}

TEST_CASE("wire: a zone that could not be asked makes the whole list incomplete", "[gce]") {
  const std::string text = GENERATE(as<std::string>{},
                                    R"({"warning":{"code":"UNREACHABLE"}})",
                                    R"({"items":[],"warning":{"code":"PARTIAL_SUCCESS"}})");
  const auto page = parse_loose_instance_page(text);
  REQUIRE_FALSE(page);
  CHECK(page.error().kind == ErrorKind::Retry);
}

TEST_CASE("wire: VMs of a zone of a wrong type are Internal, with the path", "[gce]") {
  const auto [text, path] = GENERATE(table<std::string, std::string>({
      {R"({"items":{}})", "$.items: expected an array"},
      {R"({"items":[3]})", "$.items[0]: expected an object"},
  }));
  const auto page = parse_loose_instance_page(text);
  REQUIRE_FALSE(page);
  CHECK(page.error().kind == ErrorKind::Internal);
  CHECK_THAT(page.error().what, ContainsSubstring(path));
}

TEST_CASE("wire: a VM without a status is not one that is gone", "[gce]") {
  const auto page = parse_loose_instance_page(R"({"items":[{"name":"n"}]})");
  REQUIRE(page);
  CHECK_FALSE(page->items[0].is_dead());
}

TEST_CASE("wire: how many entries of a group have which action", "[gce]") {
  const auto group = parse_group(
      R"({"name":"g","currentActions":{"none":2,"creating":1,"creatingWithoutRetries":2,
          "deleting":1,"abandoning":1,"verifying":4,"new":9}})");
  REQUIRE(group);
  CHECK(group->actions == ActionCounts{.none = 2, .creating = 3, .deleting = 2, .other = 4});
}

TEST_CASE("wire: a bulkInsert that failed says what came where, and why", "[gce]") {
  const auto operation = parse_operation(recorded("bulk_operation_error.json"));
  REQUIRE(operation);
  REQUIRE(operation->error);
  CHECK(operation->error->code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS");
  CHECK_THAT(operation->error->message,
             EndsWith("; us-central1-a: 1 of 4 created, 3 failed, 1 deleted again"));
  CHECK(to_error(*operation->error).kind == ErrorKind::NoCapacity);
  // The sum of it is better than nothing.
  const auto bare = parse_operation(
      R"({"name":"o","status":"DONE","error":{"errors":[{"code":"VM_MIN_COUNT_NOT_REACHED"}]}})");
  REQUIRE(bare);
  CHECK(bare->error->code == "VM_MIN_COUNT_NOT_REACHED");
}

TEST_CASE("wire: reads operations of zones, and lists of operations", "[gce]") {
  const auto page = parse_operation_page(R"({"items":[
    {"name":"o1","status":"RUNNING"},
    {"name":"o2","status":"DONE","zone":"https://h/projects/p/zones/us-central1-a"}]})");
  REQUIRE(page);
  REQUIRE(page->items.size() == 2);
  CHECK(page->items[0].zone.empty());
  CHECK_FALSE(page->items[0].is_done);
  CHECK(page->items[1].zone == "us-central1-a");
}

TEST_CASE("wire: reads workload policies and no others", "[gce]") {
  const auto page = parse_policy_page(R"({"items":[
    {"name":"hpc-a","description":"mark","creationTimestamp":"2026-08-02T03:04:05.000-07:00",
     "workloadPolicy":{"type":"HIGH_THROUGHPUT"}},
    {"name":"hpc-b","groupPlacementPolicy":{}}],"nextPageToken":"n"})");
  REQUIRE(page);
  REQUIRE(page->items.size() == 1);
  CHECK(page->items[0].name == "hpc-a");
  CHECK(page->items[0].description == "mark");
  CHECK(format_time(page->items[0].created) == "2026-08-02T10:04:05Z");
  CHECK(page->next == "n");
}

TEST_CASE("wire: reads requests with why they wait and until when", "[gce]") {
  const auto page = parse_request_page(recorded("requests.json"), {"hpc-a3u"});
  REQUIRE(page);
  REQUIRE(page->items.size() == 4);
  const ResizeRequest& waiting = page->items[0];
  CHECK(waiting.name.text == "j7-0abc");
  CHECK(waiting.group.text == "hpc-a3u");
  CHECK(waiting.state == RequestState::Accepted);
  CHECK(waiting.run_duration == Seconds{15300});
  CHECK(waiting.nodes == std::vector<NodeName>{{"a3u-2"}, {"a3u-3"}});
  CHECK_FALSE(waiting.error);
  REQUIRE(waiting.last_attempt);
  CHECK(waiting.last_attempt->code == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS");
  REQUIRE(waiting.last_attempt->estimated_availability);
  CHECK(format_time(*waiting.last_attempt->estimated_availability) == "2026-11-16T18:35:00Z");

  const ResizeRequest& quota = page->items[1];
  CHECK(quota.run_duration == Seconds{600});
  REQUIRE(quota.last_attempt);
  CHECK(quota.last_attempt->code == "QUOTA_EXCEEDED");
  CHECK_FALSE(quota.last_attempt->estimated_availability);

  CHECK(quota.last_attempt->message == "Quota 'PREEMPTIBLE_NVIDIA_H200_GPUS' exceeded. Limit: 8.0");

  const ResizeRequest& failed = page->items[2];
  CHECK(failed.state == RequestState::Failed);
  CHECK(failed.nodes.empty());
  REQUIRE(failed.error);
  CHECK(to_error(*failed.error).kind == ErrorKind::NoCapacity);

  CHECK(page->items[3].state == RequestState::Unknown);
  CHECK(page->items[3].is_active());
}

TEST_CASE("wire: reads managed instances", "[gce]") {
  const auto page = parse_instance_page(recorded("instances.json"));
  REQUIRE(page);
  REQUIRE(page->items.size() == 5);
  const auto& items = page->items;
  CHECK(items[0].status == InstanceStatus::Running);
  CHECK(items[0].action == InstanceAction::None);
  CHECK(items[0].id == "1234567890123456789");
  REQUIRE(items[0].terminates);
  CHECK(format_time(*items[0].terminates) == "2026-11-17T18:00:00Z");
  CHECK(items[1].is_queued());
  CHECK(items[1].url.empty());
  CHECK(items[1].id.empty());
  CHECK(items[2].name.text == "a3u-5");
  CHECK(items[2].is_leaving());
  CHECK(items[3].is_dead());
  REQUIRE(items[3].last_error);
  CHECK(items[3].last_error->code == "PERMISSIONS_ERROR");
  CHECK(items[4].status == InstanceStatus::Unknown);
  CHECK(items[4].action == InstanceAction::Other);
  CHECK_FALSE(items[4].is_dead());
}

TEST_CASE("wire: a member that waits has no status, or is PENDING", "[gce]") {
  const auto [fields, is_queued] = GENERATE(table<std::string, bool>({
      {R"("currentAction":"CREATING")", true},
      {R"("currentAction":"CREATING","instanceStatus":"PENDING")", true},
      {R"("currentAction":"RECREATING","instanceStatus":"PENDING")", true},
      {R"("currentAction":"NONE","instanceStatus":"PENDING")", true},
      {R"("instanceStatus":"PENDING")", true},
      {R"("currentAction":"CREATING","instanceStatus":"PROVISIONING")", false},
      {R"("currentAction":"CREATING","instanceStatus":"STAGING")", false},
      {R"("currentAction":"DELETING","instanceStatus":"PENDING")", false},
      {R"("currentAction":"DELETING")", false},
      {R"("currentAction":"NONE")", false},
      {R"("currentAction":"NONE","instanceStatus":"PENDING_STOP")", false},
      {R"("currentAction":"NONE","instanceStatus":"RUNNING")", false},
  }));
  CAPTURE(fields);
  const auto page = parse_instance_page(R"({"managedInstances":[{"name":"n",)" + fields + "}]}");
  REQUIRE(page);
  REQUIRE(page->items.size() == 1);
  CHECK(page->items[0].is_queued() == is_queued);
  if (is_queued) {
    CHECK_FALSE(page->items[0].is_dead());
    CHECK_FALSE(page->items[0].is_leaving());
  }
}

TEST_CASE("wire: a VM of no group that is PENDING waits, one that is made does not", "[gce]") {
  const auto [status, is_queued] = GENERATE(
      table<std::string, bool>({{"PENDING", true}, {"PROVISIONING", false}, {"RUNNING", false}}));
  const auto page =
      parse_loose_instance_page(R"({"items":[{"name":"n","status":")" + status + R"("}]})");
  REQUIRE(page);
  CHECK(page->items.at(0).is_queued() == is_queued);
}

TEST_CASE("wire: reads a console", "[gce]") {
  CHECK(*parse_serial_output(R"({"contents":"boot\nup\n","next":"8"})") == "boot\nup\n");
  CHECK(parse_serial_output("{}")->empty());
  CHECK(parse_serial_output(R"({"contents":7})").error().kind == ErrorKind::Internal);
}

TEST_CASE("wire: reads operations", "[gce]") {
  const auto failed = parse_operation(recorded("operation_error.json"));
  REQUIRE(failed);
  CHECK(failed->is_done);
  REQUIRE(failed->error);
  CHECK(to_error(*failed->error).kind == ErrorKind::Quota);
  const auto running = parse_operation(R"({"name":"o","status":"RUNNING"})");
  REQUIRE(running);
  CHECK_FALSE(running->is_done);
  CHECK_FALSE(running->error);
  const auto bare = parse_operation(R"({"name":"o","status":"DONE","httpErrorStatusCode":409})");
  REQUIRE(bare);
  CHECK(to_error(*bare->error).kind == ErrorKind::AlreadyExists);
  CHECK_FALSE(parse_operation("{}"));
}

TEST_CASE("wire: a wrong type is Internal, with its path", "[gce]") {
  const auto [text, path] = GENERATE(table<std::string, std::string>({
      {"[]", "$: expected an object"},
      {"3", "$: expected an object"},
      {R"({"items":{}})", "$.items: expected an array"},
      {R"({"items":[3]})", "$.items[0]: expected an object"},
      {R"({"items":[{"name":"a"},{"name":7}]})", "$.items[1].name: expected a string"},
      {R"({"items":[{"instances":[{"name":[]}]}]})", "$.items[0].instances[0].name"},
      {R"({"items":[{"requestedRunDuration":{"seconds":"12x"}}]})",
       "$.items[0].requestedRunDuration.seconds: expected a whole number"},
      {R"({"items":[{"requestedRunDuration":{"seconds":1.5}}]})", "requestedRunDuration.seconds"},
      {R"({"items":[{"requestedRunDuration":{"seconds":18446744073709551615}}]})",
       "requestedRunDuration.seconds"},
      {R"({"items":[{"requestedRunDuration":600}]})", "$.items[0].requestedRunDuration"},
      {R"({"items":[{"status":{"error":{"errors":["x"]}}}]})", "$.items[0].status.error.errors[0]"},
      {R"({"warning":"x"})", "$.warning"},
      {R"({"nextPageToken":1})", "$.nextPageToken"},
  }));
  CAPTURE(text);
  const auto page = parse_request_page(text, {"g"});
  REQUIRE_FALSE(page);
  CHECK(page.error().kind == ErrorKind::Internal);
  CHECK_THAT(page.error().what, ContainsSubstring(path));
}

TEST_CASE("wire: what is not JSON is Internal, and is not quoted", "[gce]") {
  const std::string text =
      GENERATE(as<std::string>{}, "", "<html>secret</html>", "{\"a\":", "\xff");
  const auto group = parse_group(text);
  REQUIRE_FALSE(group);
  CHECK(group.error().kind == ErrorKind::Internal);
  CHECK(group.error().what.find("secret") == std::string::npos);
}

TEST_CASE("wire: finds the reason of a refusal in every shape it comes in", "[gce]") {
  const auto [text, code, message] = GENERATE(table<std::string, std::string, std::string>({
      {R"({"error":{"code":403,"message":"m","errors":[{"reason":"quotaExceeded"}]}})",
       "quotaExceeded",
       "m"},
      {R"({"error":{"message":"m","status":"PERMISSION_DENIED"}})", "PERMISSION_DENIED", "m"},
      {R"({"error":{"message":"m","status":"X","details":[{"@type":"t","reason":"R"}]}})",
       "R",
       "m"},
      {R"({"error":"invalid_grant","error_description":"d"})", "invalid_grant", "d"},
      {R"({"error":{"message":7,"errors":"x"}})", "", ""},
      {R"({"error":[]})", "", ""},
      {R"({})", "", ""},
      {"<html>", "", ""},
      {"", "", ""},
  }));
  CAPTURE(text);
  const Complaint complaint = parse_complaint(403, text);
  CHECK(complaint.http_status == 403);
  CHECK(complaint.code == code);
  CHECK(complaint.message == message);
}

TEST_CASE("wire: writes a group as the design has it", "[gce]") {
  const auto body = json::parse(group_body({.name = {"hpc-a3u"},
                                            .description = "mark",
                                            .instance_template = "a3u-flex",
                                            .zones = {"us-central1-a", "us-central1-b"}},
                                           kHome));
  CHECK(body == json::parse(R"({
    "name": "hpc-a3u", "description": "mark", "baseInstanceName": "hpc-a3u", "targetSize": 0,
    "versions": [{"instanceTemplate": "projects/p1/global/instanceTemplates/a3u-flex"}],
    "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [
      {"zone": "projects/p1/zones/us-central1-a"}, {"zone": "projects/p1/zones/us-central1-b"}]},
    "updatePolicy": {"type": "OPPORTUNISTIC", "instanceRedistributionType": "NONE"},
    "instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}})"));
}

TEST_CASE("wire: a long group's base name keeps within its own limit", "[gce]") {
  const std::string name(63, 'a');
  const auto body = json::parse(group_body({.name = {name}}, kHome));
  CHECK(body["name"] == name);
  CHECK(body["baseInstanceName"].get<std::string>().size() <= 58);
  CHECK_FALSE(body["distributionPolicy"].contains("zones"));
}

TEST_CASE("wire: writes a request and a deletion", "[gce]") {
  CHECK(json::parse(request_body({.name = {"j1-x"},
                                  .group = {"g"},
                                  .description = "d \xff",
                                  .nodes = {{"n1"}, {"n2"}},
                                  .run_duration = Seconds{15300}})) ==
        json::parse(R"({"name":"j1-x","description":"d �","instances":[{"name":"n1"},{"name":"n2"}],
                        "requestedRunDuration":{"seconds":"15300"}})"));
  CHECK(json::parse(delete_instances_body(std::vector<std::string>{"n1"})) ==
        json::parse(R"({"instances":["n1"],"skipInstancesOnValidationError":true})"));
}

TEST_CASE("wire: a group of VMs that come one by one says so and takes any zone", "[gce]") {
  const auto body =
      json::parse(group_body({.name = {"hpc-l4"}, .kind = GroupKind::Individual}, kHome));
  CHECK(body["targetSizePolicy"] == json{{"mode", "INDIVIDUAL"}});
  CHECK(body["distributionPolicy"]["targetShape"] == "ANY");
  CHECK_FALSE(body.contains("resourcePolicies"));
}

TEST_CASE("wire: a group with a workload policy names it and stays in one zone", "[gce]") {
  const auto kind = GENERATE(GroupKind::Queued, GroupKind::Individual);
  const auto body =
      json::parse(group_body({.name = {"hpc-a3u-j7"}, .kind = kind, .policy = "hpc-p"}, kHome));
  CHECK(body["resourcePolicies"]["workloadPolicy"] ==
        "projects/p1/regions/us-central1/resourcePolicies/hpc-p");
  CHECK(body["distributionPolicy"]["targetShape"] == "ANY_SINGLE_ZONE");
}

TEST_CASE("wire: writes VMs of no group as the design has them", "[gce]") {
  const auto body = json::parse(bulk_body({.description = "mark job=7",
                                           .instance_template = "h4d",
                                           .zones = {"us-central1-a"},
                                           .nodes = {{"n1"}, {"n2"}},
                                           .min_count = 2,
                                           .run_duration = Seconds{3600}},
                                          kHome));
  CHECK(body == json::parse(R"({
    "count": "2", "minCount": "2", "perInstanceProperties": {"n1": {}, "n2": {}},
    "sourceInstanceTemplate": "projects/p1/global/instanceTemplates/h4d",
    "instanceProperties": {"description": "mark job=7", "scheduling": {
      "maxRunDuration": {"seconds": "3600"}, "instanceTerminationAction": "DELETE"}},
    "locationPolicy": {"targetShape": "ANY_SINGLE_ZONE",
      "locations": {"zones/us-central1-a": {"preference": "ALLOW"}},
      "zones": [{"zone": "zones/us-central1-a"}]}})"));
  const auto anywhere = json::parse(bulk_body({.nodes = {{"n1"}}}, kHome));
  CHECK(anywhere["minCount"] == "1");
  CHECK(anywhere["locationPolicy"] == json{{"targetShape", "ANY_SINGLE_ZONE"}});
}

TEST_CASE("wire: writes a workload policy by distance or by topology", "[gce]") {
  const auto [distance, word] =
      GENERATE(table<int, std::string>({{1, "SUBBLOCK"}, {2, "BLOCK"}, {3, "CLUSTER"}}));
  CHECK(json::parse(policy_body({.name = "p", .description = "mark", .max_distance = distance})) ==
        json{{"name", "p"},
             {"description", "mark"},
             {"workloadPolicy", {{"type", "HIGH_THROUGHPUT"}, {"maxTopologyDistance", word}}}});
  CHECK(json::parse(policy_body({.name = "p", .accelerator_topology = "4x4"}))["workloadPolicy"] ==
        json{{"type", "HIGH_THROUGHPUT"}, {"acceleratorTopology", "4x4"}});
}

TEST_CASE("wire: a group's zones and template", "[gce]") {
  const auto made = parse_group(
      R"({"name":"g","versions":[{"instanceTemplate":"projects/p/global/instanceTemplates/t"}],)"
      R"("distributionPolicy":{"zones":[{"zone":"https://x/projects/p/zones/us-central1-b"},)"
      R"({"zone":"projects/p/zones/us-central1-a"}]}})");
  REQUIRE(made);
  CHECK(made->zones == std::vector<std::string>{"us-central1-b", "us-central1-a"});
  CHECK(made->instance_template == "projects/p/global/instanceTemplates/t");
}
