// SPDX-License-Identifier: GPL-2.0-or-later
// What flexctl status makes of a status.json.
#include "ctl/status/render.h"
#include "ctl/status/report.h"
#include "ctl/status/watch.h"
#include "ctl/table.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace flex;
using flex::test::Utc;
using Json = nlohmann::json;

namespace {

const TimePoint kNow{Seconds{1'800'000'000}};  // 2027-01-15 08:00:00
const Terminal kScreen{.is_terminal = true, .has_colour = false, .width = 100, .height = 30};

/// As the sweeper writes it.
Json sample() {
  return Json::parse(R"({
    "cluster": "hpc", "region": "us-central1", "pid": 47, "state": "active", "why": "",
    "interval_seconds": 15, "round": 12, "groups": 3, "now": "2027-01-15T07:59:55Z",
    "last_complete_round": "2027-01-15T07:59:54Z", "failures_in_a_row": 0,
    "last_round": {"started": "2027-01-15T07:59:54Z", "milliseconds": 412, "calls": 5},
    "nodesets": [
      {"name": "a", "nodes": 8, "static_nodes": 1, "vms": 2, "jobs_waiting": 1, "jobs_running": 1,
       "next_end": "2027-01-15T10:00:00Z", "states": {"allocated": 2, "waiting": 2, "powered_down": 4},
       "nodes_by_state": {"allocated": "a-[0-1]", "waiting": "a-[2-3]", "powered_down": "a-[4-7]"}},
      {"name": "b", "nodes": 2, "vms": 0, "states": {"powered_down": 2}}],
    "requests": [
      {"name": "j8-old", "group": "hpc-a", "nodeset": "a", "state": "ACCEPTED", "job": 8, "attempt": 2,
       "nodes": "a-[2-3]", "n": 2, "created": "2027-01-15T07:00:00Z", "reason": "NO_CAPACITY",
       "message": "none in the zone", "estimate": "2027-01-15T09:20:00Z",
       "gives_up": "2027-01-15T10:30:00Z"},
      {"name": "j9-bad", "group": "hpc-b", "nodeset": "b", "state": "FAILED", "job": 9, "attempt": 1,
       "nodes": "b-0", "n": 1, "created": "2027-01-15T07:30:00Z"}],
    "vms": [{"nodeset": "a", "nodes": "a-[0-1]", "n": 2, "status": "up", "zone": "us-central1-a",
             "ends": "2027-01-15T10:00:00Z", "jobs": [7]}],
    "jobs": [{"id": 10, "state": "waiting", "user": "ann", "nodeset": "b", "nodes": "b-1", "n": 1,
              "request": "", "since": "2027-01-15T07:50:00Z", "note": "waiting for its turn"}],
    "actions": [{"time": "2027-01-15T07:59:00Z", "rule": "job_note", "what": "comment", "job": 8,
                 "why": "it waits"}]})");
}

SweeperReport report_of(const Json& json) {
  const auto report = parse_report(json.dump());
  REQUIRE(report);
  return *report;
}

std::string text_of(const SweeperReport& report, std::size_t height = 0, std::size_t width = 200) {
  const Utc utc;
  Terminal screen = kScreen;
  screen.width = width;
  return fmt::format("{}",
                     fmt::join(render_status({.report = report,
                                              .now = kNow,
                                              .trouble = find_trouble(report, kNow),
                                              .height = height},
                                             screen),
                               "\n"));
}

}  // namespace

TEST_CASE("status: says what there is to see of nodesets, requests, VMs and jobs", "[ctl]") {
  const std::string text = text_of(report_of(sample()));
  for (const char* part :
       {"hpc in us-central1: 10 nodes in 2 nodesets, 2 VMs, 3 groups, 1 request queued, 1 job "
        "waiting",
        "sweeper active, last complete look 6 s ago, every 15 s; round 12 took 0.4 s with 5 calls",
        "8 nodes, 1 static  2 VMs  1 waiting, 1 running  first ends 10:00:00 (2 h)",
        "since 07:00:00 (1 h)",
        "attempt 2  Google estimates 09:20:00; NO_CAPACITY; gives up at 10:30:00; none in",
        "2 h left  ends 10:00:00  job 7",
        "job 10  ann  1  b-1  since 07:50:00 (10 min)  waiting for its turn",
        "a  waiting    2  a-[2-3]"})
    CHECK_THAT(text, ContainsSubstring(part));
}

TEST_CASE("status: what failed comes before what waits", "[ctl]") {
  const std::string text = text_of(report_of(sample()));
  CHECK(text.find("j9-bad") < text.find("j8-old"));
}

TEST_CASE("status: a member that is missing or of another kind is no trouble", "[ctl]") {
  CHECK(report_of(Json::object()).nodesets.empty());
  Json odd = sample();
  odd.erase("vms");
  odd.erase("jobs");
  odd["nodesets"][0].erase("nodes_by_state");
  odd["nodesets"][1] = 3;
  odd["requests"][0]["created"] = 17;
  odd["actions"] = "none";
  CHECK_THAT(text_of(report_of(odd)), ContainsSubstring("j8-old"));
  CHECK_FALSE(parse_report("[]"));
  CHECK_FALSE(parse_report("{"));
}

TEST_CASE("status: control characters of others do not reach the terminal", "[ctl]") {
  Json evil = sample();
  evil["requests"][0]["message"] = "\033[2Jx";
  evil["jobs"][0]["note"] = "a\nb";
  CHECK(text_of(report_of(evil)).find('\033') == std::string::npos);
}

TEST_CASE("status: a nodeset alone is shown alone", "[ctl]") {
  const std::string text = text_of(only_of(report_of(sample()), {"a"}));
  CHECK_THAT(text, ContainsSubstring("8 nodes in 1 nodeset"));
  CHECK_THAT(text, ContainsSubstring("a-[4-7]"));
  CHECK(text.find("j9-bad") == std::string::npos);
}

TEST_CASE("status: trouble is what somebody must see to", "[ctl]") {
  CHECK(find_trouble(report_of(sample()), kNow).empty());
  Json json = sample();
  SECTION("a sweeper that is silent") {
    CHECK(find_trouble(report_of(json), kNow + Seconds{160}).empty());
    const auto trouble = find_trouble(report_of(json), kNow + Seconds{600});
    REQUIRE(trouble.size() == 1);
    CHECK_THAT(trouble[0], ContainsSubstring("has said nothing for 10 min"));
    CHECK_THAT(trouble[0], ContainsSubstring("systemctl status flex-sweeper"));
  }
  SECTION("one that is passive says something every five minutes only") {
    json["state"] = "passive";
    CHECK(find_trouble(report_of(json), kNow + Seconds{900}).empty());
    CHECK(find_trouble(report_of(json), kNow + Seconds{1200}).size() == 1);
  }
  SECTION("one that was stopped, at once") {
    json["state"] = "stopped";
    REQUIRE(find_trouble(report_of(json), kNow).size() == 1);
  }
  SECTION("looks that fail, which are further apart") {
    json["failures_in_a_row"] = 3;
    json["why"] = "Compute Engine: no route";
    const auto trouble = find_trouble(report_of(json), kNow + Seconds{200});
    REQUIRE(trouble.size() == 1);
    CHECK_THAT(trouble[0], ContainsSubstring("last 3 looks failed"));
    CHECK_THAT(trouble[0], ContainsSubstring("no route"));
  }
  SECTION("a nodeset that does not boot, but not one that was paused") {
    json["nodesets"][0]["stopped"] = "3 boots in a row failed";
    json["nodesets"][1]["stopped"] = "paused by ann";
    const auto trouble = find_trouble(report_of(json), kNow);
    REQUIRE(trouble.size() == 1);
    CHECK_THAT(trouble[0], ContainsSubstring("flexctl resume a"));
    CHECK_THAT(text_of(report_of(json)), ContainsSubstring("paused by ann"));
  }
  SECTION("actions that fail: the looks are all well") {
    json["last_round"]["failed"] = 3;
    const auto trouble = find_trouble(report_of(json), kNow);
    REQUIRE(trouble.size() == 1);
    CHECK_THAT(trouble[0], ContainsSubstring("3 of the sweeper's last actions failed: journalctl"));
    Json& action = json["actions"][0];
    action["result"] = "failed";
    action["error"] = "403: no";
    action["nodes"] = "a-0";
    action["times"] = 4;
    CHECK_THAT(find_trouble(report_of(json), kNow)[0],
               ContainsSubstring("failed, as comment a-0 (403: no): journalctl"));
    CHECK_THAT(text_of(report_of(json)), ContainsSubstring("4 times; failed: 403: no; it waits"));
  }
  SECTION("a node that was repaired in vain, but not one that is being repaired") {
    json["repairs"] = Json::parse(R"([
      {"node": "a-3", "count": 3, "reason": "gpu lost", "given_up": true},
      {"node": "a-4", "count": 1, "reason": "gpu lost", "given_up": false}])");
    const auto trouble = find_trouble(report_of(json), kNow);
    REQUIRE(trouble.size() == 1);
    CHECK_THAT(trouble[0], ContainsSubstring("node a-3 stays drained"));
    CHECK_THAT(trouble[0], ContainsSubstring("gpu lost"));
    CHECK(find_trouble(only_of(report_of(json), {"b"}), kNow).empty());
  }
  SECTION("a nodeset that is stopped and paused as well") {
    json["nodesets"][0]["stopped"] = "3 boots in a row failed";
    json["nodesets"][0]["paused"] = "paused by ann";
    CHECK(find_trouble(report_of(json), kNow).size() == 1);
  }
  SECTION("something left behind") {
    json["leaks"] = {{{"kind", "vm"}, {"target", "a-9"}, {"why", "no node"}}};
    CHECK(find_trouble(report_of(json), kNow).size() == 1);
  }
}

TEST_CASE("status: ten thousand nodes, requests and VMs fit the screen", "[ctl]") {
  Json json = sample();
  for (int i = 0; i < 10000; ++i) {
    json["requests"].push_back(json["requests"][0]);
    json["vms"].push_back(json["vms"][0]);
    if (i < 200) json["nodesets"].push_back(json["nodesets"][1]);
  }
  const SweeperReport report = report_of(json);
  const Utc utc;
  for (const std::size_t height : {10U, 24U, 29U, 60U}) {
    const auto lines =
        render_status({.report = report, .now = kNow, .trouble = {}, .height = height}, kScreen);
    CHECK(lines.size() <= height);
    CHECK(std::all_of(lines.begin(), lines.end(), [](const auto& line) {
      return width_of(line) <= kScreen.width;
    }));
  }
  const std::string text = text_of(report, 40);
  CHECK_THAT(text, ContainsSubstring("of 10002 (--all)"));
  CHECK_THAT(text, ContainsSubstring("of 202 (--all)"));
}

TEST_CASE("status: what Google says is seen on every terminal", "[ctl]") {
  Json json = sample();
  json["requests"][0]["name"] = "j12340-k3v9x0q2ab";
  json["requests"][0]["job"] = 12340;
  json["requests"][0]["nodes"] = "a3ultra-[0-6,8,10-20,33]";
  json["requests"][0]["n"] = 20;
  json["requests"][0]["reason"] = "ZONE_RESOURCE_POOL_EXHAUSTED";
  const SweeperReport report = report_of(json);
  for (const std::size_t width : {80U, 100U, 120U}) {
    const std::string text = text_of(report, 60, width);
    CAPTURE(width, text);
    CHECK_THAT(
        text, ContainsSubstring("\n      Google estimates 09:20:00; ZONE_RESOURCE_POOL_EXHAUSTED"));
    CHECK_THAT(text, ContainsSubstring("job 12340  20  1 h     a3ultra-[0-6"));
    CHECK(text.find("attempt 1") == std::string::npos);
    CHECK(text.find("07:00:00") == std::string::npos);
  }
  CHECK_THAT(text_of(report, 60, 76), ContainsSubstring("a3ultra-0, and 19 more"));
  // Whole lists, on lines as long as it takes.
  CHECK_THAT(text_of(report, 0, 80), ContainsSubstring("a3ultra-[0-6,8,10-20,33]"));
  CHECK_THAT(text_of(report, 0, 80), ContainsSubstring("none in the zone"));
}

TEST_CASE("status: requests of one name in several groups are told apart", "[ctl]") {
  Json json = sample();
  CHECK(text_of(report_of(json)).find("in hpc-a") == std::string::npos);
  json["requests"].push_back(json["requests"][0]);
  json["requests"][2]["group"] = "hpc-a-zus-central1-b";
  const std::string text = text_of(report_of(json), 60, 80);
  CHECK_THAT(text, ContainsSubstring("      in hpc-a; Google estimates 09:20:00; NO_CAP"));
  CHECK_THAT(text, ContainsSubstring("      in hpc-a-zus-central1-b; Google estimates 09:20:00"));
}

TEST_CASE("status: on a narrow screen a nodeset's states and an action's why are below it",
          "[ctl]") {
  const std::string text = text_of(report_of(sample()), 60, 70);
  CHECK_THAT(text, ContainsSubstring("first ends in 2 h\n      2 waiting, 2 allocated, 4 powe"));
  CHECK_THAT(text_of(report_of(sample()), 60, 60),
             ContainsSubstring("2  up  us-central1-a  2 h left  job 7  a-[0-1]"));
  CHECK_THAT(text, ContainsSubstring("NO_CAPACITY; attempt 2; g"));
}

TEST_CASE("status: on a small screen each part is seen, or how much of it is not", "[ctl]") {
  Json json = sample();
  for (int i = 0; i < 12; ++i) {
    for (const char* list : {"requests", "vms", "nodesets", "jobs", "actions"})
      json[list].push_back(json[list][0]);
  }
  const SweeperReport report = report_of(json);
  const std::string small = text_of(report, 23);
  for (const char* title : {"NODESETS: ", "REQUESTS: ", "WAITING ", "VMS: ", "NODES: ", "LAST A"})
    CHECK_THAT(small, ContainsSubstring(title));
  CHECK_THAT(small, ContainsSubstring("j9-bad"));
  CHECK_THAT(small, ContainsSubstring("2 h left"));
  CHECK(std::count(small.begin(), small.end(), '\n') >= 20);  // the room is used

  const std::string tiny = text_of(report, 8);
  CHECK_THAT(tiny, ContainsSubstring("REQUESTS: 14 not shown (--all)"));
  CHECK_THAT(tiny, ContainsSubstring("LAST ACTIONS: 13 not shown (--all)"));
}

TEST_CASE("status: what is asked for again is told with its time and why", "[ctl]") {
  Json json = sample();
  json["retries"] = Json::parse(R"([{"nodes": "a-[5-6]", "n": 2, "attempts": 2, "refusals": 1,
      "next": "2027-01-15T08:05:00Z", "why": "HTTP status 403: no permission"}])");
  json["last_round"]["postponed"] = 7;
  const SweeperReport report = report_of(json);
  CHECK_THAT(text_of(report),
             ContainsSubstring("2  a-[5-6]  next try 08:05:00 (5 min)  3 failed  HTTP status 403"));
  CHECK_THAT(text_of(report, 60, 60),
             ContainsSubstring("2  next try in 5 min  3 failed  a-[5-6]\n      HTTP status 403"));
  CHECK_THAT(text_of(report), ContainsSubstring(", 7 actions put off to its next rounds"));
  CHECK_THAT(text_of(only_of(report, {"a"})), ContainsSubstring("RETRIES"));
  CHECK(text_of(only_of(report, {"b"})).find("RETRIES") == std::string::npos);
}

TEST_CASE("status: where nothing is asked for now is told with until when and why", "[ctl]") {
  Json json = sample();
  json["shut_ways"] = Json::parse(R"([
      {"nodeset": "a", "job": 7, "nodes": "a-[5-6]", "n": 2, "group": "test-a-zc", "failures": 1,
       "whole_wait": false, "until": "2027-01-15T08:05:00Z", "why": "STOCKOUT"},
      {"nodeset": "a", "job": 7, "nodes": "a-[5-6]", "n": 2, "group": "test-a-zd", "failures": 0,
       "whole_wait": true, "why": "request j7-x was cancelled by root"}])");
  const SweeperReport report = report_of(json);
  CHECK_THAT(text_of(report),
             ContainsSubstring("test-a-zc  job 7  2  a-[5-6]  until 08:05:00 (5 min)  STOCKOUT"));
  CHECK_THAT(text_of(report), ContainsSubstring("as long as it waits     request j7-x was"));
  CHECK_THAT(
      text_of(report, 60, 60),
      ContainsSubstring("test-a-zc  job 7  2  for 5 min            a-[5-6]\n      STOCKOUT"));
  CHECK_THAT(text_of(only_of(report, {"a"})), ContainsSubstring("SHUT WAYS"));
  CHECK(text_of(only_of(report, {"b"})).find("SHUT WAYS") == std::string::npos);
  CHECK(text_of(report_of(sample())).find("SHUT WAYS") == std::string::npos);
}

TEST_CASE("status: what the sweeper has not listed is told", "[ctl]") {
  Json json = sample();
  json["requests_omitted"] = 150;
  json["vms_omitted"] = 1;
  json["jobs_omitted"] = 20;
  json["vms"][0]["jobs_n"] = 17;
  const std::string text = text_of(report_of(json));
  for (const char* part : {"REQUESTS: 150 more requests are not listed",
                           "VMS: 1 more VM is not listed",
                           "WAITING WITHOUT A REQUEST: 20 more jobs are not listed",
                           "at least 1 request queued",
                           "job 7 and 16 more"})
    CHECK_THAT(text, ContainsSubstring(part));
  CHECK_THAT(text_of(only_of(report_of(json), {"a"})),
             ContainsSubstring("150 more requests of all nodesets are not listed"));
  // Those that wait are listed first: what is left out are then others.
  json["jobs"].push_back({{"id", 11}, {"state", "running"}});
  CHECK(text_of(report_of(json)).find("20 more jobs") == std::string::npos);
}

TEST_CASE("status: says what a job waits for, where the sweeper does", "[ctl]") {
  Json json = sample();
  json["jobs"][0]["phase"] = "retry";
  json["jobs"][0]["retry_at"] = "2027-01-15T08:05:00Z";
  CHECK_THAT(text_of(report_of(json)),
             ContainsSubstring("asked for again at 08:05:00; waiting for its turn"));
  json["jobs"][0]["phase"] = "booting";
  CHECK_THAT(text_of(report_of(json)), ContainsSubstring("its VMs boot; "));
  json["active_requests"] = 450;
  json["requests_omitted"] = 150;
  CHECK_THAT(text_of(report_of(json)), ContainsSubstring(" 450 requests queued"));
  json["looked"] = false;
  CHECK_THAT(text_of(report_of(json)), ContainsSubstring("2 nodesets, not looked at yet"));
}

TEST_CASE("status: without a limit nothing is left out", "[ctl]") {
  Json json = sample();
  for (int i = 0; i < 30; ++i) json["actions"].push_back(json["actions"][0]);
  const SweeperReport report = report_of(json);
  const std::string text = text_of(report);
  CHECK(text.find("--all") == std::string::npos);
  const Utc utc;
  const std::vector<std::string> trouble(20, "bad");
  const auto lines = render_status({.report = report, .now = kNow, .trouble = trouble}, kScreen);
  CHECK(std::count(lines.begin(), lines.end(), "!! bad") == 20);
  CHECK(render_status({.report = report, .now = kNow, .trouble = trouble, .height = 23},
                      kScreen)[5] == "!! and 15 more (--all)");
}

TEST_CASE("status: a frame draws over the one before", "[ctl]") {
  const std::string drawn = frame({"one", "two"}, "foot", kScreen);
  CHECK(drawn == "\033[Hone\033[K\r\ntwo\033[K\r\n\033[J\033[30;1Hfoot\033[K");
  const std::vector<std::string> many(100, "x");
  const std::string full = frame(many, "foot", kScreen);
  CHECK(std::count(full.begin(), full.end(), '\n') == 29);
}
