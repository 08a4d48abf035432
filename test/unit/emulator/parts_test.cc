// SPDX-License-Identifier: GPL-2.0-or-later
// Shapes, masks, filters, faults, settings and the state file.
#include "emulator/faults.h"
#include "emulator/fields.h"
#include "emulator/filter.h"
#include "emulator/front.h"
#include "emulator/validate.h"
#include "test/support/catch.h"
#include "test/unit/emulator/world_fixture.h"

using namespace flex::emulator;  // NOLINT(google-build-using-namespace)

TEST_CASE("shapes: a literal part of a path wins over a name") {
  const auto bulk = shapes().find("POST", "/compute/v1/projects/p/zones/z/instances/bulkInsert");
  REQUIRE(bulk);
  CHECK(bulk->method->name == "instances.bulkInsert");
  CHECK_FALSE(shapes().find("POST", "/compute/v1/projects/p/zones/z/disks"));
  CHECK(shapes().verbs("/compute/v1/projects/p/zones/z/disks").empty());
}

TEST_CASE("shapes: every method has a handler") {
  const Json json = Json::parse(shapes_json());
  for (const auto& [name, method] : json.at("methods").items()) {
    INFO(name);
    CHECK(find_handler(name) != nullptr);
  }
}

TEST_CASE("validate: finds what is not in the message and says where") {
  const auto [body, where] = GENERATE(table<std::string, std::string>({
      {R"({"nam": "x"})", "nam"},
      {R"({"name": 7})", "name"},
      {R"({"instances": {"name": "x"}})", "instances"},
      {R"({"instances": [{"name": "a"}, {"nam": "x"}]})", "instances[1].nam"},
      {R"({"requestedRunDuration": {"seconds": "x"}})", "requestedRunDuration.seconds"},
      {R"({"requestedRunDuration": {"seconds": 1.5}})", "requestedRunDuration.seconds"},
      {R"({"resizeBy": 3000000000})", "resizeBy"},
      {R"({"instances": [{"status": "SLEEPY"}]})", "instances[0].status"},
      {R"({"requestedRunDuration": 600})", "requestedRunDuration"},
  }));
  const auto bad = check_message(shapes(), "InstanceGroupManagerResizeRequest", Json::parse(body));
  REQUIRE(bad);
  CHECK_THAT(*bad, ContainsSubstring("'" + where + "'"));
}

TEST_CASE("validate: leaves alone what the message allows") {
  const std::string body = GENERATE(as<std::string>{},
                                    R"({})",
                                    R"({"name": "x", "resizeBy": 2})",
                                    R"({"requestedRunDuration": {"seconds": 600}})",
                                    R"({"requestedRunDuration": {"seconds": "600", "nanos": 0}})",
                                    R"({"state": "ACCEPTED", "id": "18446744073709551615"})",
                                    R"({"description": null})");
  const Json json = Json::parse(body);
  CHECK_FALSE(check_message(shapes(), "InstanceGroupManagerResizeRequest", json));
}

TEST_CASE("validate: drops what only the server sets") {
  const Json body = Json::parse(R"({"name": "x", "state": "SUCCEEDED", "id": "7", "kind": "k"})");
  CHECK(without_output_only(shapes(), "InstanceGroupManagerResizeRequest", body) ==
        Json{{"name", "x"}});
}

TEST_CASE("validate: a query parameter must be known, single and of its type") {
  const MethodShape& method = *shapes().method("regionInstanceGroupManagers.list");
  CHECK_FALSE(
      check_query(shapes(), method, {{"maxResults", "5"}, {"alt", "json"}, {"fields", "x"}}));
  CHECK(check_query(shapes(), method, {{"size", "5"}}));
  CHECK(check_query(shapes(), method, {{"maxResults", "many"}}));
  CHECK(check_query(shapes(), method, {{"filter", "a=b"}, {"filter", "c=d"}}));
}

TEST_CASE("validate: a request id is a UUID") {
  CHECK(is_uuid("123e4567-e89b-12d3-a456-426614174000"));
  const std::string bad = GENERATE(as<std::string>{},
                                   "",
                                   "7",
                                   "123e4567e89b12d3a456426614174000",
                                   "00000000-0000-0000-0000-000000000000",
                                   "123e4567-e89b-12d3-a456-42661417400g");
  CHECK_FALSE(is_uuid(bad));
}

TEST_CASE("fields: a mask keeps what it names") {
  const Json value = Json::parse(
      R"({"items": [{"name": "a", "status": {"error": 1, "x": 2}}, {"name": "b"}], "kind": "k"})");
  const auto [mask, want] = GENERATE(table<std::string, std::string>({
      {"items(name,status/error)",
       R"({"items": [{"name": "a", "status": {"error": 1}}, {"name": "b"}]})"},
      {"items/name,kind", R"({"items": [{"name": "a"}, {"name": "b"}], "kind": "k"})"},
      {"items/status/error", R"({"items": [{"status": {"error": 1}}, {}]})"},
      {"items(status(x,error))", R"({"items": [{"status": {"error": 1, "x": 2}}, {}]})"},
      {"nothing", "{}"},
      {"kind,nextPageToken", R"({"kind": "k"})"},
      {"*/name", R"({"items": [{"name": "a"}, {"name": "b"}], "kind": "k"})"},
  }));
  const auto parsed = parse_fields(mask);
  REQUIRE(parsed);
  CHECK(apply_fields(*parsed, value) == Json::parse(want));
}

TEST_CASE("fields: a mask that cannot be read is refused") {
  const std::string bad = GENERATE(as<std::string>{}, "", "a,", "a(b", "a)", "/a", "a//b", "a()");
  CHECK_FALSE(parse_fields(bad));
}

TEST_CASE("filter: takes what matches and leaves the rest") {
  const Json item = Json::parse(
      R"({"name": "node-7", "zone": "https://x/zones/us-central1-a", "size": 5, "s": {"on": true}})");
  const auto [text, want] = GENERATE(table<std::string, bool>({
      {"", true},
      {"name eq \"node-.*\"", true},
      {"name eq node", false},
      {"name ne node-8", true},
      {"name = node-7", true},
      {"name=node-7", true},
      {"name = \"node-7\"", true},
      {"name != node-7", false},
      {"name:node*", true},
      {"name:ode", true},
      {"name:x*", false},
      {"(name eq node-7) (size eq 5)", true},
      {"(name eq node-7) (size eq 6)", false},
      {"name = node-7 AND size > 4", true},
      {"name = node-7 AND size > 5", false},
      {"name = x OR size <= 5", true},
      {"NOT name = x", true},
      {"s.on = true", true},
      {"zone = us-central1-a", true},
      {"zone eq https://x/zones/us-central1-a", true},
      {"missing = x", false},
  }));
  INFO(text);
  const auto filter = parse_filter(text);
  REQUIRE(filter);
  CHECK(matches(*filter, item) == want);
}

TEST_CASE("filter: what cannot be read is refused") {
  const std::string bad =
      GENERATE(as<std::string>{}, "name", "name =", "name eq \"x", "name is x", "name eq \"[\"");
  CHECK_FALSE(parse_filter(bad));
}

TEST_CASE("faults: strike by count, after the first ones, on their method only") {
  Faults faults;
  REQUIRE(
      faults.add(Json{{"method", "instances.get"}, {"kind", "503"}, {"count", 2}, {"after", 1}}));
  std::string hits;
  for (int i = 0; i < 5; ++i) hits += faults.draw("instances.get").fault ? 'x' : '.';
  CHECK(hits == ".xx..");
  CHECK_FALSE(faults.draw("instances.list").fault);
}

TEST_CASE("faults: chance repeats with its seed") {
  std::string runs[2];
  for (std::string& run : runs) {
    Faults faults;
    REQUIRE(faults.add(Json{{"kind", "lost_reply"}, {"probability", 0.5}, {"seed", 7U}}));
    for (int i = 0; i < 64; ++i) run += faults.draw("instances.get").fault ? 'x' : '.';
  }
  CHECK(runs[0] == runs[1]);
  CHECK(runs[0].find('x') != std::string::npos);
  CHECK(runs[0].find('.') != std::string::npos);
}

TEST_CASE("faults: an unknown kind, method or key is refused") {
  Faults faults;
  const std::string bad = GENERATE(as<std::string>{},
                                   "[]",
                                   R"({"kind": "x"})",
                                   R"({"kind": "503", "method": "a.b"})",
                                   R"({"kind": "503", "cuont": 1})",
                                   R"({"kind": "503", "count": "1"})");
  CHECK_FALSE(faults.add(Json::parse(bad)));
  CHECK(faults.list().empty());
}

TEST_CASE("settings: a bad change changes nothing") {
  Settings settings;
  std::optional<double> factor;
  const std::string bad = GENERATE(as<std::string>{},
                                   R"({"latency_ms": 5, "color": 1})",
                                   R"({"latency_ms": "x"})",
                                   R"({"latency_ms": 5, "capacity": {"z": "x"}})",
                                   R"({"time_factor": 0})",
                                   "7",
                                   R"({"hook": "program"})",
                                   R"({"queued_status": "PENDING"})",
                                   R"({"queued_status": null})",
                                   R"({"boot_failure": 2})");
  CHECK(apply_settings(settings, Json::parse(bad), factor));
  CHECK(settings.latency_ms == 0);
}

TEST_CASE("settings: a change is merged and shown") {
  Settings settings;
  std::optional<double> factor;
  const Json change = Json::parse(
      R"({"latency_ms": 40, "capacity": {"z": 4}, "quota": {"INSTANCES": 2}, "time_factor": 60})");
  CHECK_FALSE(apply_settings(settings, change, factor));
  CHECK(factor == 60);
  CHECK(settings.quota.at("ACTIVE_RESIZE_REQUESTS") == 100);
  CHECK(to_json(settings, 60).at("capacity") == Json{{"z", 4}});
}

TEST_CASE("settings: what a VM that waits is said to be") {
  Settings settings;
  std::optional<double> factor;
  CHECK(to_json(settings, 1).at("queued_status") == "mixed");
  const std::string word = GENERATE(as<std::string>{}, "none", "pending", "mixed");
  CHECK_FALSE(apply_settings(settings, Json{{"queued_status", word}}, factor));
  CHECK(to_json(settings, 1).at("queued_status") == word);
  CHECK(says_pending(settings.queued_status, "a-0") !=
        (word == "mixed" ? says_pending(settings.queued_status, "a-1") : word == "none"));
}

TEST_CASE("state: what is saved and loaded goes on as it would have") {
  Cloud first;
  first.world.settings.capacity = {{"us-central1-a", 1}, {"us-central1-b", 0}};
  first.make_group("g");
  static_cast<void>(first.ask("g", "r1", {"n1"}, 600));
  first.pass(5);
  static_cast<void>(first.ask("g", "r2", {"n2"}, 700));
  first.pass(2);
  static_cast<void>(first.call("DELETE", "/instanceGroupManagers/g/resizeRequests/r1"));
  const Json saved = Json::parse(save_world(first.world).dump());
  Cloud second;
  second.world.settings.capacity = first.world.settings.capacity;
  second.wall = first.wall;
  REQUIRE(load_world(second.world, saved));
  CHECK(save_world(second.world) == saved);
  second.pass(2);
  CHECK_FALSE(second.group("g").requests.contains("r1"));
  second.pass(600);
  CHECK(second.request("g", "r2").state == RequestState::Succeeded);
  CHECK(second.world.vms.size() == 1);
}

TEST_CASE("state: a file that is none is refused") {
  Cloud cloud;
  const std::string bad = GENERATE(
      as<std::string>{}, "{}", "[]", R"({"version": 1})", R"({"version": 9, "groups": {}})");
  CHECK_FALSE(load_world(cloud.world, Json::parse(bad)));
}

TEST_CASE("front: nothing is answered once the state is saved for the end") {
  const HttpIn list{
      .verb = "GET", .path = "/compute/v1/projects/p/zones", .authorization = "Bearer x"};
  Front front({});
  CHECK(front.handle(list).status == 200);
  CHECK_FALSE(front.handle(list).is_dropped);
  front.finish();
  CHECK(front.handle(list).is_dropped);
}
