// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/rest_cloud.h"

#include "test/support/catch.h"
#include "test/support/fake_http.h"
#include "test/unit/gce/data.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <set>

using namespace flex;
using namespace std::chrono_literals;

namespace {

/// A RestCloud on a FakeHttp whose metadata server always has a token.
struct Bench {
  FakeHttp::Script script{};
  std::unique_ptr<Cloud> cloud{};
  std::vector<HttpRequest> calls{};  ///< to the Compute API

  explicit Bench(const FakeHttp::Handler& handler, CloudSettings settings = {}) {
    script.handler = [this, handler](const HttpRequest& request) -> Result<HttpResponse> {
      if (is_metadata(request)) return token_reply("tok");
      calls.push_back(request);
      return handler(request);
    };
    settings.credentials = "metadata";
    if (settings.project.empty()) settings.project = "p1";
    settings.region = "r1";
    auto opened = open_cloud(settings, std::make_unique<FakeHttp>(script));
    REQUIRE(opened);
    cloud = *std::move(opened);
  }
};

template <class T>
Then<T> keep(std::optional<Result<T>>& place) {
  return [&place](Result<T> result) {
    REQUIRE_FALSE(place);
    place = std::move(result);
  };
}

HttpResponse operation(const std::string& status = "RUNNING") {
  return ok(R"({"name":"op-1","status":")" + status + "\"}");
}

std::string request_id(const HttpRequest& request) {
  return query_value(request.url, "requestId");
}

}  // namespace

TEST_CASE("rest_cloud: lists follow the pages to the end", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    const bool is_first = query_value(request.url, "pageToken").empty();
    return ok(recorded(is_first ? "groups_1.json" : "groups_2.json"));
  });
  std::optional<Result<std::vector<Group>>> groups;
  bench.cloud->fetch_groups("hpc-a3u", keep(groups));
  CHECK_FALSE(groups);  // never from inside the call
  bench.cloud->run();
  REQUIRE(groups);
  REQUIRE(*groups);
  REQUIRE((*groups)->size() == 2);  // 'other' has not the prefix
  CHECK((**groups)[1].name.text == "hpc-a3u-2");
  REQUIRE(bench.calls.size() == 2);
  CHECK(bench.calls[0].bearer == "tok");
  CHECK(query_value(bench.calls[0].url, "filter") == "name eq \"hpc-a3u.*\"");
  CHECK(query_value(bench.calls[0].url, "maxResults") == "500");
  CHECK_THAT(query_value(bench.calls[0].url, "fields"), ContainsSubstring("warning/code"));
  CHECK(query_value(bench.calls[1].url, "pageToken") == "CgA=+/&x");
  CHECK(bench.cloud->stats().calls == 2);
  CHECK(bench.cloud->stats().retries == 0);
}

TEST_CASE("rest_cloud: a list with a page missing is an error, not a shorter list", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    if (query_value(request.url, "pageToken").empty()) return ok(recorded("groups_1.json"));
    return refusal(403, "forbidden");
  });
  std::optional<Result<std::vector<Group>>> groups;
  bench.cloud->fetch_groups("", keep(groups));
  bench.cloud->run();
  REQUIRE(groups);
  REQUIRE_FALSE(*groups);
  CHECK(groups->error().kind == ErrorKind::Denied);
  CHECK_THAT(groups->error().what, StartsWith("listing groups: "));
  CHECK(query_value(bench.calls[0].url, "filter").empty());
}

TEST_CASE("rest_cloud: a list that says it is partial, or turns in a circle, is an error",
          "[gce]") {
  const auto [text, kind] = GENERATE(table<std::string, ErrorKind>({
      {recorded("groups_partial.json"), ErrorKind::Retry},
      {R"({"items":[],"nextPageToken":"same"})", ErrorKind::Internal},
  }));
  Bench bench([text = text](const HttpRequest&) { return ok(text); });
  std::optional<Result<std::vector<Group>>> groups;
  bench.cloud->fetch_groups("", keep(groups));
  bench.cloud->run();
  REQUIRE(groups);
  REQUIRE_FALSE(*groups);
  CHECK(groups->error().kind == kind);
}

TEST_CASE("rest_cloud: a write keeps its requestId for its retries, the next has another",
          "[gce]") {
  int failures = 2;
  Bench bench([&](const HttpRequest&) -> Result<HttpResponse> {
    if (failures-- > 0) return Error{ErrorKind::Retry, "lost", "HTTP_FAILED"};
    return operation();
  });
  std::optional<Result<Operation>> first;
  std::optional<Result<Operation>> second;
  bench.cloud->insert_request({.name = {"j1"}, .group = {"g"}, .nodes = {{"n1"}}}, keep(first));
  bench.cloud->run();
  bench.cloud->cancel_request({"g"}, {"j1"}, keep(second));
  bench.cloud->run();
  REQUIRE(first);
  REQUIRE(*first);
  REQUIRE(bench.calls.size() == 4);
  CHECK(request_id(bench.calls[0]).size() == 36);
  CHECK(request_id(bench.calls[0])[14] == '4');
  CHECK(request_id(bench.calls[1]) == request_id(bench.calls[0]));
  CHECK(request_id(bench.calls[2]) == request_id(bench.calls[0]));
  CHECK(request_id(bench.calls[3]) != request_id(bench.calls[0]));
  CHECK(bench.cloud->stats().retries == 2);
}

TEST_CASE("rest_cloud: each try is told, with its answer", "[gce]") {
  int tries = 0;
  Bench bench([&](const HttpRequest&) -> Result<HttpResponse> {
    if (++tries == 1) return Error{ErrorKind::Retry, "lost", "HTTP_FAILED"};
    return tries == 2 ? Result<HttpResponse>(refusal(503, "backendError")) : operation();
  });
  std::vector<std::string> told;
  bench.cloud->set_call_observer([&told](const CallNote& note) {
    told.push_back(fmt::format("{} {}{}", note.method, note.status, note.is_retry ? " again" : ""));
  });
  std::optional<Result<Operation>> answer;
  bench.cloud->delete_group({"g"}, keep(answer));
  bench.cloud->run();
  CHECK(told == std::vector<std::string>{"regionInstanceGroupManagers.delete 0",
                                         "regionInstanceGroupManagers.delete 503 again",
                                         "regionInstanceGroupManagers.delete 200 again"});
}

TEST_CASE("rest_cloud: waits as long as the server asks before it tries again", "[gce]") {
  int failures = 1;
  Bench bench([&](const HttpRequest&) -> Result<HttpResponse> {
    if (failures-- == 0) return ok(R"({"name":"g"})");
    HttpResponse busy = refusal(429, "rateLimitExceeded");
    busy.retry_after = 7s;
    return busy;
  });
  const auto began = bench.script.now;
  std::optional<Result<Group>> group;
  bench.cloud->fetch_group({"g"}, keep(group));
  bench.cloud->run();
  REQUIRE(group);
  CHECK(*group);
  CHECK(bench.script.now - began >= 7s);
  CHECK(bench.script.now - began < 8s);
}

TEST_CASE("rest_cloud: passing trouble is tried again, the rest is not", "[gce]") {
  const auto [status, reason, tries, kind] = GENERATE(table<int, std::string, int, ErrorKind>({
      {503, "backendError", 10, ErrorKind::Retry},
      {500, "", 10, ErrorKind::Retry},
      {403, "rateLimitExceeded", 10, ErrorKind::Retry},
      {400, "invalid", 1, ErrorKind::Invalid},
      {403, "forbidden", 1, ErrorKind::Denied},
      {403, "quotaExceeded", 1, ErrorKind::Quota},
      {404, "notFound", 1, ErrorKind::NotFound},
      {409, "alreadyExists", 1, ErrorKind::AlreadyExists},
      {412, "conditionNotMet", 1, ErrorKind::Precondition},
      {302, "", 1, ErrorKind::Internal},
  }));
  CAPTURE(status, reason);
  Bench bench([status = status, reason = reason](const HttpRequest&) {
    return refusal(status, reason, "why");
  });
  std::optional<Result<Operation>> done;
  bench.cloud->insert_group({.name = {"g"}}, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE_FALSE(*done);
  CHECK(to_string(done->error().kind) == to_string(kind));
  CHECK_THAT(done->error().what, StartsWith("creating group 'g': why"));
  CHECK(bench.calls.size() == static_cast<std::size_t>(tries));
}

TEST_CASE("rest_cloud: at the deadline everything left is answered with Retry", "[gce]") {
  Bench bench([](const HttpRequest&) { return refusal(503, "backendError"); },
              {.run_timeout = 10s, .retry = {.limit = 1000, .base = 1s, .max = 3s}});
  std::vector<Error> errors;
  for (int i = 0; i < 3; ++i) {
    bench.cloud->fetch_group({"g"}, [&](Result<Group> group) {
      REQUIRE_FALSE(group);
      errors.push_back(group.error());
      // What starts after it is answered, too.
      if (errors.size() == 3)
        bench.cloud->fetch_group({"late"},
                                 [&](Result<Group> late) { errors.push_back(late.error()); });
    });
  }
  const auto began = bench.script.now;
  bench.cloud->run();
  REQUIRE(errors.size() == 4);
  for (const Error& error : errors) CHECK(error.kind == ErrorKind::Retry);
  CHECK(bench.script.now - began <= 11s);
}

TEST_CASE("rest_cloud: a call without an answer ends at the deadline and says why", "[gce]") {
  Bench bench([](const HttpRequest&) { return ok("{}"); }, {.run_timeout = 10s});
  bench.script.latency = 1h;
  std::optional<Result<Group>> group;
  bench.cloud->fetch_group({"g"}, keep(group));
  bench.cloud->run();
  REQUIRE(group);
  REQUIRE_FALSE(*group);
  CHECK(group->error().kind == ErrorKind::Retry);
  CHECK(group->error().what == "group 'g': the run's time limit of 10 s is used up");
  bench.script.latency = 1ms;
  std::optional<Result<Group>> again;
  bench.cloud->set_deadline(bench.script.now + 10s);
  bench.cloud->fetch_group({"g"}, keep(again));
  bench.cloud->run();
  REQUIRE(again);
  CHECK(*again);
}

TEST_CASE("rest_cloud: a Retry-After beyond the deadline is not waited for", "[gce]") {
  Bench bench([](const HttpRequest&) {
    HttpResponse busy = refusal(503, "backendError");
    busy.retry_after = 1h;
    return busy;
  });
  const auto began = bench.script.now;
  std::optional<Result<Group>> group;
  bench.cloud->fetch_group({"g"}, keep(group));
  bench.cloud->run();
  REQUIRE(group);
  CHECK_FALSE(*group);
  CHECK(bench.script.now - began < 1s);
}

TEST_CASE("rest_cloud: waits for an operation until it is done", "[gce]") {
  int asked = 0;
  Bench bench([&](const HttpRequest& request) {
    CHECK(request.method == "POST");
    CHECK_THAT(request.url, ContainsSubstring("/regions/r1/operations/op-1/wait?"));
    CHECK(request.timeout > 120s);
    return ++asked < 3 ? operation() : operation("DONE");
  });
  std::optional<Result<Done>> done;
  bench.cloud->wait_operation({.name = "op-1"}, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  CHECK(*done);
  CHECK(asked == 3);
}

TEST_CASE("rest_cloud: an operation that failed is its own error", "[gce]") {
  Bench bench([](const HttpRequest&) { return ok(recorded("operation_error.json")); });
  std::optional<Result<Done>> done;
  bench.cloud->wait_operation({.name = "operation-1"}, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE_FALSE(*done);
  CHECK(done->error().kind == ErrorKind::Quota);
  CHECK(done->error().code == "QUOTA_EXCEEDED");
  CHECK_THAT(done->error().what, ContainsSubstring("ACTIVE_RESIZE_REQUESTS"));
}

TEST_CASE("rest_cloud: an operation that is done needs no call", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  std::optional<Result<Done>> good;
  std::optional<Result<Done>> bad;
  bench.cloud->wait_operation({.name = "o", .is_done = true}, keep(good));
  bench.cloud->wait_operation(
      {.name = "o", .is_done = true, .error = ProviderError{.code = "INVALID_ARGUMENT"}},
      keep(bad));
  CHECK_FALSE(good);
  bench.cloud->run();
  REQUIRE(good);
  CHECK(*good);
  REQUIRE(bad);
  CHECK(bad->error().kind == ErrorKind::Invalid);
  CHECK(bench.calls.empty());
}

TEST_CASE("rest_cloud: a console is asked for where the VM is, and its end is kept", "[gce]") {
  const std::string wide = "\u00e4";  // two bytes, of which the cut takes one
  const std::string console = wide + std::string(kMaxSerialOutput - 1, 'x');
  Bench bench([&](const HttpRequest&) { return ok(nlohmann::json{{"contents", console}}.dump()); });
  std::optional<Result<std::string>> text;
  bench.cloud->fetch_serial_output(
      {.name = {"n1"}, .url = "https://h/compute/v1/projects/p1/zones/r1-b/instances/n1"},
      keep(text));
  bench.cloud->run();
  REQUIRE(text);
  REQUIRE(*text);
  CHECK(**text == std::string(kMaxSerialOutput - 1, 'x'));
  REQUIRE(bench.calls.size() == 1);
  CHECK(bench.calls[0].method == "GET");
  CHECK_THAT(bench.calls[0].url,
             ContainsSubstring("/projects/p1/zones/r1-b/instances/n1/serialPort?"));
  CHECK(query_value(bench.calls[0].url, "start") == "-65536");
}

TEST_CASE("rest_cloud: a VM without a URL has no console, and a VM that is gone neither", "[gce]") {
  Bench bench([](const HttpRequest&) { return refusal(404, "notFound"); });
  std::optional<Result<std::string>> queued;
  std::optional<Result<std::string>> gone;
  bench.cloud->fetch_serial_output({.name = {"n1"}}, keep(queued));
  CHECK_FALSE(queued);
  bench.cloud->fetch_serial_output({.name = {"n2"}, .url = "zones/r1-b/instances/n2"}, keep(gone));
  bench.cloud->run();
  REQUIRE(queued);
  CHECK(queued->error().kind == ErrorKind::Invalid);
  REQUIRE(gone);
  CHECK(gone->error().kind == ErrorKind::NotFound);
  CHECK(bench.calls.size() == 1);
}

TEST_CASE("rest_cloud: deletes by URL and by name in calls of their own", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  const std::vector<Instance> instances{{.name = {"n1"}, .url = "projects/p1/zones/z/instances/n1"},
                                        {.name = {"n2"}}};
  std::optional<Result<Operation>> done;
  bench.cloud->delete_instances({"g"}, instances, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  CHECK(*done);
  REQUIRE(bench.calls.size() == 2);
  const auto first = nlohmann::json::parse(bench.calls[0].body);
  const auto second = nlohmann::json::parse(bench.calls[1].body);
  CHECK(first["instances"] == nlohmann::json::array({"projects/p1/zones/z/instances/n1"}));
  CHECK(second["instances"] == nlohmann::json::array({"n2"}));
  CHECK(first["skipInstancesOnValidationError"] == true);
}

TEST_CASE("rest_cloud: deletes of one sort are one call, of none no call", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  std::optional<Result<Operation>> named;
  std::optional<Result<Operation>> none;
  std::optional<Result<Operation>> too_many;
  const std::vector<Instance> many(kMaxRequestSize + 1);
  bench.cloud->delete_instances({"g"}, std::vector<Instance>{{.name = {"n1"}}}, keep(named));
  bench.cloud->delete_instances({"g"}, {}, keep(none));
  bench.cloud->delete_instances({"g"}, many, keep(too_many));
  bench.cloud->run();
  CHECK(bench.calls.size() == 1);
  REQUIRE(none);
  CHECK((*none)->is_done);
  REQUIRE(too_many);
  CHECK(too_many->error().kind == ErrorKind::Invalid);
}

TEST_CASE("rest_cloud: one of two deletions that fails is the answer", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    const bool is_url = request.body.find("zones/") != std::string::npos;
    return is_url ? refusal(403, "forbidden") : operation();
  });
  const std::vector<Instance> instances{{.name = {"n1"}, .url = "zones/z/instances/n1"},
                                        {.name = {"n2"}}};
  std::optional<Result<Operation>> done;
  bench.cloud->delete_instances({"g"}, instances, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE_FALSE(*done);
  CHECK(done->error().kind == ErrorKind::Denied);
}

TEST_CASE("rest_cloud: VMs that come one by one are asked for by name", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  std::optional<Result<Operation>> made;
  std::optional<Result<Operation>> none;
  std::optional<Result<Operation>> too_many;
  bench.cloud->create_instances({"g"}, std::vector<NodeName>{{"n1"}, {"n2"}}, keep(made));
  bench.cloud->create_instances({"g"}, {}, keep(none));
  bench.cloud->create_instances({"g"}, std::vector<NodeName>(kMaxRequestSize + 1), keep(too_many));
  CHECK_FALSE(none);
  bench.cloud->run();
  REQUIRE(made);
  CHECK(*made);
  REQUIRE(bench.calls.size() == 1);
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/instanceGroupManagers/g/createInstances?"));
  CHECK(nlohmann::json::parse(bench.calls[0].body) ==
        nlohmann::json::parse(R"({"instances":[{"name":"n1"},{"name":"n2"}]})"));
  CHECK((*none)->is_done);
  CHECK(too_many->error().kind == ErrorKind::Invalid);
}

TEST_CASE("rest_cloud: VMs of no group are asked for in the region, never too many", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  std::optional<Result<Operation>> made;
  std::optional<Result<Operation>> too_many;
  bench.cloud->bulk_insert({.nodes = {{"n1"}}, .run_duration = 30s}, keep(made));
  bench.cloud->bulk_insert({.nodes = std::vector<NodeName>(kMaxRequestSize + 1)}, keep(too_many));
  bench.cloud->run();
  REQUIRE(made);
  CHECK(*made);
  REQUIRE(bench.calls.size() == 1);
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/regions/r1/instances/bulkInsert?"));
  CHECK(request_id(bench.calls[0]).size() == 36);
  CHECK(too_many->error().kind == ErrorKind::Invalid);
}

TEST_CASE("rest_cloud: VMs of no group are this cluster's, in all zones of the region", "[gce]") {
  const auto vm = [](const std::string& name, const std::string& zone, const std::string& mark) {
    return nlohmann::json{
        {"name", name},
        {"selfLink", "https://h/projects/p1/zones/" + zone + "/instances/" + name},
        {"status", "RUNNING"},
        {"description", mark}};
  };
  const std::string ours = "slurm-flex-start cluster=hpc nodeset=h4d";
  nlohmann::json page;
  page["items"] = {vm("n1", "r1-a", ours + " job=7"),
                   vm("n2", "r1-a", "slurm-flex-start cluster=hpc2 nodeset=h4d"),
                   vm("n3", "r1-a", "slurm-flex-start cluster=hpc nodeset="),
                   vm("n4", "r1-a", ""),
                   vm("n5", "r1-a", "copy of " + ours)};
  Bench bench([&](const HttpRequest& request) {
    if (request.url.find("/regions/r1?") != std::string::npos)
      return ok(
          R"({"zones":["https://h/projects/p1/zones/r1-a","https://h/projects/p1/zones/r1-b"]})");
    if (request.url.find("/zones/r1-b/") != std::string::npos) return ok("{}");
    if (query_value(request.url, "pageToken") == "p2") return ok("{}");
    nlohmann::json first = page;
    first["nextPageToken"] = "p2";
    return ok(first.dump());
  });
  std::optional<Result<std::vector<Instance>>> vms;
  bench.cloud->fetch_loose_instances("hpc", {}, keep(vms));
  bench.cloud->run();
  REQUIRE(vms);
  REQUIRE(*vms);
  REQUIRE((*vms)->size() == 1);
  CHECK((**vms)[0].name.text == "n1");
  REQUIRE(bench.calls.size() == 4);
  CHECK_THAT(bench.calls[1].url, ContainsSubstring("/projects/p1/zones/r1-a/instances?"));
  CHECK(query_value(bench.calls[1].url, "filter") ==
        "description eq \"slurm-flex-start cluster=hpc nodeset=.*\"");
  // The zones are read once, and not at all where they are given.
  vms.reset();
  bench.cloud->fetch_loose_instances("hpc", {}, keep(vms));
  bench.cloud->run();
  CHECK(bench.calls.size() == 7);
  vms.reset();
  bench.cloud->fetch_loose_instances("hpc", {"r1-b"}, keep(vms));
  bench.cloud->run();
  CHECK(bench.calls.size() == 8);
  CHECK((*vms)->empty());
}

TEST_CASE("rest_cloud: a zone missing from the list of VMs is an error", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    if (request.url.find("/zones/r1-b/") == std::string::npos) return ok("{}");
    return ok(R"({"warning":{"code":"UNREACHABLE"}})");
  });
  std::optional<Result<std::vector<Instance>>> vms;
  bench.cloud->fetch_loose_instances("hpc", {"r1-a", "r1-b"}, keep(vms));
  bench.cloud->run();
  REQUIRE(vms);
  REQUIRE_FALSE(*vms);
  CHECK(vms->error().kind == ErrorKind::Retry);
}

TEST_CASE("rest_cloud: VMs of a zone, with the group that made them", "[gce]") {
  Bench bench([](const HttpRequest&) {
    return ok(R"({"items":[{"name":"a-0","id":"7","status":"RUNNING","selfLink":"u","metadata":{
      "items":[{"key":"x","value":"y"},
               {"key":"created-by","value":"projects/1/regions/r1/instanceGroupManagers/hpc-a"}]}},
      {"name":"a-1","status":"STAGING"}]})");
  });
  std::optional<Result<std::vector<ZoneVm>>> vms;
  bench.cloud->fetch_vms({.zone = "r1-a", .name_pattern = "a-(0|1)", .with_group = true},
                         keep(vms));
  bench.cloud->run();
  REQUIRE(vms);
  REQUIRE(*vms);
  REQUIRE((*vms)->size() == 2);
  CHECK((**vms)[0].group.text == "hpc-a");
  CHECK((**vms)[0].vm.id == "7");
  CHECK((**vms)[1].group.empty());
  CHECK((**vms)[1].vm.status == InstanceStatus::Staging);
  REQUIRE(bench.calls.size() == 1);
  CHECK(query_value(bench.calls[0].url, "filter") == "name eq \"a-(0|1)\"");
  CHECK_THAT(query_value(bench.calls[0].url, "fields"), ContainsSubstring("metadata"));
  vms.reset();
  bench.cloud->fetch_vms({.zone = "r1-a"}, keep(vms));
  bench.cloud->run();
  CHECK(query_value(bench.calls[1].url, "filter").empty());
  CHECK(query_value(bench.calls[1].url, "fields").find("metadata") == std::string::npos);
}

TEST_CASE("rest_cloud: VMs of all zones of the region, or an error", "[gce]") {
  int refused = 0;
  Bench bench([&](const HttpRequest& request) {
    if (request.url.find("/regions/r1?") != std::string::npos)
      return ok(R"({"zones":["https://h/projects/p1/zones/r1-a","zones/r1-b"]})");
    const bool is_b = request.url.find("/zones/r1-b/") != std::string::npos;
    if (is_b && refused > 0) return refusal(403, "forbidden");
    return ok(is_b ? R"({"items":[{"name":"a-1","status":"RUNNING"}]})"
                   : R"({"items":[{"name":"a-0","status":"RUNNING"}]})");
  });
  std::optional<Result<std::vector<ZoneVm>>> vms;
  bench.cloud->fetch_vms({.zone = "", .name_pattern = "a-(0|1)"}, keep(vms));
  bench.cloud->run();
  REQUIRE(vms);
  REQUIRE(*vms);
  CHECK((*vms)->size() == 2);
  CHECK(bench.calls.size() == 3);
  CHECK(query_value(bench.calls[2].url, "filter") == "name eq \"a-(0|1)\"");
  refused = 1;
  vms.reset();
  bench.cloud->fetch_vms({.zone = ""}, keep(vms));
  bench.cloud->run();
  REQUIRE(vms);
  CHECK_FALSE(*vms);
}

TEST_CASE("rest_cloud: bulkInsert operations are those that are not done", "[gce]") {
  Bench bench([](const HttpRequest&) {
    return ok(R"({"items":[{"name":"o1","status":"RUNNING"},{"name":"o2","status":"DONE"}]})");
  });
  std::optional<Result<std::vector<Operation>>> operations;
  bench.cloud->fetch_bulk_operations(keep(operations));
  bench.cloud->run();
  REQUIRE(operations);
  REQUIRE(*operations);
  REQUIRE((*operations)->size() == 1);
  CHECK((**operations)[0].name == "o1");
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/regions/r1/operations?"));
  CHECK(query_value(bench.calls[0].url, "filter") ==
        "(operationType = \"bulkInsert\") AND (status != \"DONE\")");
}

TEST_CASE("rest_cloud: VMs of no group are deleted one by one, side by side", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    if (request.url.find("/instances/n1?") != std::string::npos) return refusal(404, "notFound");
    return ok(R"({"name":"op-2","status":"RUNNING","zone":"https://h/projects/p1/zones/r1-b"})");
  });
  const std::vector<Instance> vms{{.name = {"n1"}, .url = "projects/p1/zones/r1-a/instances/n1"},
                                  {.name = {"n2"}, .url = "projects/p1/zones/r1-b/instances/n2"}};
  std::optional<Result<Operation>> done;
  bench.cloud->delete_instances({}, vms, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE(*done);
  CHECK((*done)->name == "op-2");
  CHECK((*done)->zone == "r1-b");
  REQUIRE(bench.calls.size() == 2);
  CHECK(bench.calls[0].method == "DELETE");
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/zones/r1-a/instances/n1?"));
  CHECK(bench.script.most_in_flight == 2);
}

TEST_CASE("rest_cloud: VMs of no group that are all gone need no waiting", "[gce]") {
  Bench bench([](const HttpRequest&) { return refusal(404, "notFound"); });
  const std::vector<Instance> vms{{.name = {"n1"}, .url = "zones/r1-a/instances/n1"}};
  std::optional<Result<Operation>> done;
  bench.cloud->delete_instances({}, vms, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE(*done);
  CHECK((*done)->is_done);
}

TEST_CASE("rest_cloud: one VM that cannot be deleted is the answer, after the others", "[gce]") {
  Bench bench([](const HttpRequest& request) {
    const bool is_first = request.url.find("/instances/n1?") != std::string::npos;
    return is_first ? refusal(403, "forbidden") : operation();
  });
  const std::vector<Instance> vms{{.name = {"n1"}, .url = "zones/r1-a/instances/n1"},
                                  {.name = {"n2"}},
                                  {.name = {"n3"}, .url = "zones/r1-a/instances/n3"}};
  std::optional<Result<Operation>> done;
  bench.cloud->delete_instances({}, vms, keep(done));
  bench.cloud->run();
  CHECK(bench.calls.size() == 2);
  REQUIRE(done);
  REQUIRE_FALSE(*done);
}

TEST_CASE("rest_cloud: a zone's operation is waited for in its zone", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation("DONE"); });
  std::optional<Result<Done>> done;
  bench.cloud->wait_operation({.name = "op-1", .zone = "r1-b"}, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  CHECK(*done);
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/zones/r1-b/operations/op-1/wait?"));
}

TEST_CASE("rest_cloud: a bulkInsert's error says what became of the VMs", "[gce]") {
  Bench bench([](const HttpRequest&) { return ok(recorded("bulk_operation_error.json")); });
  std::optional<Result<Done>> done;
  bench.cloud->wait_operation({.name = "operation-2"}, keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE_FALSE(*done);
  CHECK(done->error().kind == ErrorKind::NoCapacity);
  CHECK_THAT(done->error().what, ContainsSubstring("us-central1-a: 1 of 4 created, 3 failed"));
}

TEST_CASE("rest_cloud: a policy in use is not the moment to delete it", "[gce]") {
  Bench bench([](const HttpRequest&) {
    return refusal(400, "resourceInUseByAnotherResource", "used by a group");
  });
  std::optional<Result<Operation>> done;
  bench.cloud->delete_policy("p", keep(done));
  bench.cloud->run();
  REQUIRE(done);
  REQUIRE_FALSE(*done);
  CHECK(done->error().kind == ErrorKind::Precondition);
  CHECK_THAT(done->error().what, StartsWith("deleting workload policy 'p': "));
  CHECK(bench.calls[0].method == "DELETE");
  CHECK_THAT(bench.calls[0].url, ContainsSubstring("/regions/r1/resourcePolicies/p?"));
}

TEST_CASE("rest_cloud: policies are those with the prefix", "[gce]") {
  Bench bench([](const HttpRequest&) {
    return ok(R"({"items":[{"name":"hpc-a","workloadPolicy":{}},{"name":"x-hpc-b",
      "workloadPolicy":{}},{"name":"hpc-c"}]})");
  });
  std::optional<Result<std::vector<Policy>>> policies;
  bench.cloud->fetch_policies("hpc-", keep(policies));
  bench.cloud->run();
  REQUIRE(policies);
  REQUIRE(*policies);
  REQUIRE((*policies)->size() == 1);
  CHECK((**policies)[0].name == "hpc-a");
  CHECK(query_value(bench.calls[0].url, "filter") == "name eq \"hpc-.*\"");
}

TEST_CASE("rest_cloud: calls go out side by side", "[gce]") {
  Bench bench([](const HttpRequest&) { return ok(R"({"name":"g"})"); });
  int answers = 0;
  for (int i = 0; i < 10; ++i) bench.cloud->fetch_group({"g"}, [&](Result<Group>) { ++answers; });
  bench.cloud->run();
  CHECK(answers == 10);
  CHECK(bench.script.most_in_flight == 10);
  CHECK(bench.script.log.size() == 11);  // one token for all
}

TEST_CASE("rest_cloud: timers fire in run", "[gce]") {
  Bench bench([](const HttpRequest&) { return operation(); });
  std::string order;
  bench.cloud->after(200ms, [&] { order += 'b'; });
  bench.cloud->after(100ms, [&] { order += 'a'; });
  CHECK(order.empty());
  bench.cloud->run();
  CHECK(order == "ab");
}

TEST_CASE("rest_cloud: an endpoint that is not allowed is refused at once", "[gce]") {
  FakeHttp::Script script;
  const auto cloud =
      open_cloud({.endpoint = "http://compute.googleapis.com"}, std::make_unique<FakeHttp>(script));
  REQUIRE_FALSE(cloud);
  CHECK(cloud.error().kind == ErrorKind::Invalid);
}
