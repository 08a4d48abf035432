// SPDX-License-Identifier: GPL-2.0-or-later
// Every request the client can send, held against the API's own description.
#include "lib/gce/cloud_facts.h"
#include "lib/gce/rest_cloud.h"
#include "test/support/catch.h"
#include "test/support/fake_http.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <set>

using namespace flex;
using nlohmann::json;

namespace {

/// Every method, parameter, field and enum of Compute v1 that we may touch.
constexpr const char* kContract = TEST_DATA "/gce/contract.json";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find(separator, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

bool fits(const std::string& pattern, const std::string& path) {
  const auto expected = split(pattern, '/');
  const auto given = split(path, '/');
  if (expected.size() != given.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool is_name = expected[i].starts_with('{');
    if (is_name ? given[i].empty() : expected[i] != given[i]) return false;
  }
  return true;
}

/// The problems of a value under a description of its field.
void check_value(const json& contract,
                 const json& field,
                 const json& value,
                 const std::string& path,
                 std::vector<std::string>& problems);

void check_message(const json& contract,
                   const std::string& name,
                   const json& value,
                   const std::string& path,
                   std::vector<std::string>& problems) {
  if (!value.is_object()) return problems.push_back(path + ": not an object");
  const json& message = contract["messages"][name];
  for (const auto& [key, item] : value.items()) {
    const std::string place = fmt::format("{}.{}", path, key);
    if (!message.contains(key)) {
      problems.push_back(place + ": unknown field");
      continue;
    }
    if (message[key].value("outputOnly", false)) problems.push_back(place + ": output only");
    check_value(contract, message[key], item, place, problems);
  }
}

void check_value(const json& contract,
                 const json& field,
                 const json& value,
                 const std::string& path,
                 std::vector<std::string>& problems) {
  if (field.value("repeated", false)) {
    if (!value.is_array()) return problems.push_back(path + ": not an array");
    json one = field;
    one["repeated"] = false;
    for (const json& item : value) check_value(contract, one, item, path + "[]", problems);
    return;
  }
  if (field.value("map", false)) {
    if (!value.is_object()) return problems.push_back(path + ": not a map");
    json one = field;
    one["map"] = false;
    for (const auto& [key, item] : value.items())
      check_value(contract, one, item, fmt::format("{}[{}]", path, key), problems);
    return;
  }
  const std::string type = field["type"];
  if (type == "message") return check_message(contract, field["message"], value, path, problems);
  bool is_good = false;
  if (type == "string")
    is_good = value.is_string();
  else if (type == "bool")
    is_good = value.is_boolean();
  else if (type == "int32")
    is_good = value.is_number_integer();
  else if (type == "int64" || type == "uint64")
    is_good = value.is_string();
  else if (type == "enum")
    is_good = std::find(field["enum"].begin(), field["enum"].end(), value) != field["enum"].end();
  if (!is_good) problems.push_back(fmt::format("{}: not a {}: {}", path, type, value.dump()));
}

/// The names in a `fields` mask, each with its parents: "items/name".
void check_mask(const json& contract,
                const std::string& message,
                const std::string& mask,
                std::vector<std::string>& problems) {
  std::size_t i = 0;
  const std::function<void(const std::string&)> group = [&](const std::string& at) {
    while (i < mask.size() && mask[i] != ')') {
      std::string now = at;
      std::string word;
      for (bool is_map = false;;) {
        word.clear();
        if (is_map && i < mask.size() && mask[i] == '*') {
          // Any key: the values are of the same message.
          is_map = false;
          if (++i < mask.size() && mask[i] == '/') ++i;
          continue;
        }
        while (i < mask.size() && std::isalnum(static_cast<unsigned char>(mask[i])) != 0)
          word += mask[i++];
        if (is_map || !contract["messages"].contains(now) ||
            !contract["messages"][now].contains(word))
          return problems.push_back(fmt::format("fields: {} has no '{}'", now, word));
        is_map = contract["messages"][now][word].value("map", false);
        now = contract["messages"][now][word].value("message", "");
        if (i < mask.size() && mask[i] == '/') {
          ++i;
          continue;
        }
        break;
      }
      if (i < mask.size() && mask[i] == '(') {
        ++i;
        group(now);
        ++i;
      }
      if (i < mask.size() && mask[i] == ',') ++i;
    }
  };
  group(message);
}

std::vector<std::string> problems_of(const json& contract,
                                     const HttpRequest& request,
                                     std::set<std::string>& used) {
  static const std::string kEndpoint = "https://compute.googleapis.com";
  std::vector<std::string> problems;
  if (!request.url.starts_with(kEndpoint)) return {"another host"};
  const std::string rest = request.url.substr(kEndpoint.size());
  const auto mark = std::min(rest.find('?'), rest.size());
  const std::string path = rest.substr(0, mark);
  for (const auto& [name, method] : contract["methods"].items()) {
    if (method["verb"] != request.method || !fits(method["path"], path)) continue;
    used.insert(name);
    if (mark < rest.size())
      for (const std::string& pair : split(rest.substr(mark + 1), '&')) {
        const std::string key = pair.substr(0, pair.find('='));
        const auto& standard = contract["standardQueryParams"];
        if (!method["queryParams"].contains(key) &&
            std::find(standard.begin(), standard.end(), key) == standard.end())
          problems.push_back("unknown query parameter " + key);
        if (key == "fields")
          check_mask(contract, method["response"], query_value(request.url, "fields"), problems);
      }
    const bool is_write = method["queryParams"].contains("requestId");
    if (is_write && query_value(request.url, "requestId").empty())
      problems.emplace_back("no requestId");
    if (method["body"].is_null()) {
      if (!request.body.empty()) problems.emplace_back("a body");
    } else {
      check_message(contract, method["body"], json::parse(request.body), "$", problems);
    }
    return problems;
  }
  return {"no such method: " + request.method + " " + path};
}

}  // namespace

TEST_CASE("contract: every request of the client is in the contract", "[gce]") {
  std::ifstream file(kContract);
  REQUIRE(file);
  const json contract = json::parse(file);
  FakeHttp::Script script;
  script.handler = [](const HttpRequest& request) {
    if (is_metadata(request)) return token_reply("t");
    if (request.url.find("pageToken") == std::string::npos && request.method == "GET")
      return ok(R"({"name":"x","nextPageToken":"next"})");
    return ok(R"({"name":"op","status":"DONE"})");
  };
  auto opened = open_cloud({.project = "p1", .region = "r1", .credentials = "metadata"},
                           std::make_unique<FakeHttp>(script));
  REQUIRE(opened);
  Cloud& cloud = **opened;
  const auto ignore = [](const auto&) {};
  std::set<std::string> told;
  cloud.set_call_observer([&told](const CallNote& note) { told.emplace(note.method); });
  cloud.fetch_groups("hpc-", ignore);
  cloud.fetch_groups("", ignore);
  cloud.fetch_group({"g"}, ignore);
  cloud.fetch_requests({"g"}, ignore);
  cloud.fetch_instances({"g"}, ignore);
  cloud.fetch_serial_output({.name = {"n1"}, .url = "projects/p1/zones/z/instances/n1"}, ignore);
  cloud.fetch_loose_instances("hpc", {}, ignore);
  cloud.fetch_loose_instances("hpc", {"r1-a"}, ignore);
  cloud.fetch_vms({.zone = "r1-a", .name_pattern = "a-(0|1)", .with_group = true}, ignore);
  cloud.fetch_bulk_operations(ignore);
  cloud.fetch_policies("hpc-", ignore);
  cloud.wait_operation({.name = "op"}, ignore);
  cloud.wait_operation({.name = "op", .zone = "r1-a"}, ignore);
  cloud.insert_group({.name = {"g"}, .description = "d", .instance_template = "t", .zones = {"z"}},
                     ignore);
  cloud.insert_request({.name = {"j1"},
                        .group = {"g"},
                        .description = "d",
                        .nodes = {{"n1"}},
                        .run_duration = Seconds{600}},
                       ignore);
  cloud.insert_group(
      {.name = {"i"}, .instance_template = "t", .kind = GroupKind::Individual, .policy = "p"},
      ignore);
  cloud.create_instances({"i"}, std::vector<NodeName>{{"n1"}, {"n2"}}, ignore);
  cloud.bulk_insert({.description = "d",
                     .instance_template = "t",
                     .zones = {"r1-a"},
                     .nodes = {{"n1"}, {"n2"}},
                     .min_count = 2,
                     .run_duration = Seconds{30}},
                    ignore);
  cloud.insert_policy({.name = "p", .description = "d", .max_distance = 2}, ignore);
  cloud.insert_policy({.name = "p", .accelerator_topology = "4x4"}, ignore);
  cloud.delete_policy("p", ignore);
  cloud.delete_instances(
      {}, std::vector<Instance>{{.name = {"n1"}, .url = "zones/r1-a/instances/n1"}}, ignore);
  cloud.cancel_request({"g"}, {"j1"}, ignore);
  cloud.delete_instances(
      {"g"}, std::vector<Instance>{{.name = {"n1"}, .url = "u"}, {.name = {"n2"}}}, ignore);
  cloud.delete_request({"g"}, {"j1"}, ignore);
  cloud.delete_group({"g"}, ignore);
  cloud.run();

  std::set<std::string> used;
  for (const HttpRequest& request : script.log) {
    if (is_metadata(request)) continue;
    CAPTURE(request.method, request.url, request.body);
    CHECK(problems_of(contract, request, used) == std::vector<std::string>{});
  }
  CHECK(used == std::set<std::string>{
                    "instances.delete",
                    "instances.getSerialPortOutput",
                    "instances.list",
                    "regionInstanceGroupManagerResizeRequests.cancel",
                    "regionInstanceGroupManagerResizeRequests.delete",
                    "regionInstanceGroupManagerResizeRequests.insert",
                    "regionInstanceGroupManagerResizeRequests.list",
                    "regionInstanceGroupManagers.createInstances",
                    "regionInstanceGroupManagers.delete",
                    "regionInstanceGroupManagers.deleteInstances",
                    "regionInstanceGroupManagers.get",
                    "regionInstanceGroupManagers.insert",
                    "regionInstanceGroupManagers.list",
                    "regionInstanceGroupManagers.listManagedInstances",
                    "regionInstances.bulkInsert",
                    "regionOperations.list",
                    "regionOperations.wait",
                    "regions.get",
                    "resourcePolicies.delete",
                    "resourcePolicies.insert",
                    "resourcePolicies.list",
                    "zoneOperations.wait",
                });
  CHECK(told == used);
}

TEST_CASE("contract: every question for a permission is in the contract", "[gce]") {
  std::ifstream file(kContract);
  REQUIRE(file);
  const json contract = json::parse(file);
  const std::string base = "https://compute.googleapis.com/compute/v1/projects/p";
  std::set<std::string> used;
  for (const Probe& probe : permission_probes(
           {.region = "r", .zone = "r-a", .has_placement = true, .has_loose = true})) {
    const HttpRequest request{.method = probe.method,
                              .url = base + probe.path + (probe.is_write ? "?requestId=x" : ""),
                              .body = probe.body};
    CAPTURE(request.method, request.url, request.body);
    CHECK(problems_of(contract, request, used) == std::vector<std::string>{});
  }
}

TEST_CASE("contract: the check itself sees what is wrong", "[gce]") {
  std::ifstream file(kContract);
  REQUIRE(file);
  const json contract = json::parse(file);
  std::set<std::string> used;
  const std::string base = "https://compute.googleapis.com/compute/v1/projects/p/regions/r/";
  const auto bad = [&](HttpRequest request) {
    return !problems_of(contract, request, used).empty();
  };
  CHECK(bad({.url = base + "instanceGroupManager"}));
  CHECK(bad({.url = base + "instanceGroupManagers?page=1"}));
  CHECK(bad({.url = base + "instanceGroupManagers?fields=items(nam)"}));
  CHECK(bad({.method = "POST", .url = base + "instanceGroupManagers", .body = "{}"}));
  CHECK(bad({.method = "POST",
             .url = base + "instanceGroupManagers?requestId=x",
             .body = R"({"targetSise":0})"}));
  CHECK_FALSE(bad({.url = base + "instanceGroupManagers?fields=items(name,versions/name)"}));
  const std::string all =
      "https://compute.googleapis.com/compute/v1/projects/p/aggregated/instances?fields=";
  CHECK_FALSE(bad({.url = all + "items/*/instances(name),items/*/warning/code"}));
  CHECK(bad({.url = all + "items/*/instances(nam)"}));
  CHECK(bad({.url = all + "items/instances"}));
  CHECK(bad({.method = "POST",
             .url = base + "instances/bulkInsert?requestId=x",
             .body = R"({"perInstanceProperties":{"n1":{"nam":"x"}}})"}));
}
