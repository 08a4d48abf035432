// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/status.h"

#include "lib/core/node_lease.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <nlohmann/json.hpp>

using namespace flex;
using namespace flex::test;

namespace {

using Json = nlohmann::json;
using std::chrono::hours;
using std::chrono::minutes;

Json status_of(const Scene& scene, const Status& status = {}) {
  return Json::parse(to_json_text(status, scene.settings, scene.shot, scene.memory));
}

/// VMs of a request that was served, with their end.
void serve(Scene& scene, JobId job, const std::string& hostlist, Seconds left) {
  scene.asked(job, hostlist, RequestState::Succeeded);
  scene.vms(hostlist);
  for (const NodeName& name : names_in(hostlist))
    scene.entry(name.text).terminates = scene.shot.now + left;
}

}  // namespace

TEST_CASE("status: a nodeset tells its nodes by state, its jobs and its next end", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  scene.running_job(8, "a-[2-3]");
  serve(scene, 8, "a-[2-3]", hours{1});
  scene.entry("a-3").terminates = scene.shot.now + minutes{50};
  const Json set = status_of(scene)["nodesets"][0];
  CHECK(set["mode"] == "queued");
  CHECK(set["states"] == Json{{"waiting", 2}, {"allocated", 2}, {"powered_down", 4}});
  CHECK(set["nodes_by_state"] ==
        Json{{"waiting", "a-[0-1]"}, {"allocated", "a-[2-3]"}, {"powered_down", "a-[4-7]"}});
  CHECK(set["jobs_waiting"] == 1);
  CHECK(set["jobs_running"] == 1);
  CHECK(set["vms"] == 2);
  CHECK(set["next_end"] == "2027-01-15T08:50:00Z");
  CHECK_FALSE(set.contains("stopped"));
}

TEST_CASE("status: without a look nothing is said of nodes", "[sweeper]") {
  const Scene scene;
  Status status;
  CHECK(status_of(scene, status)["looked"] == true);
  status.is_blind = true;
  const Json json = status_of(scene, status);
  CHECK(json["looked"] == false);
  CHECK(json["nodesets"][0]["name"] == "a");
  CHECK(json["nodesets"][0]["nodes"] == 8);
  CHECK(json["nodesets"][0]["states"] == Json::object());
}

TEST_CASE("status: a stopped nodeset says why", "[sweeper]") {
  Scene scene;
  scene.memory.stopped["a"].why = "3 boots failed in a row";
  CHECK(status_of(scene)["nodesets"][0]["stopped"] == "3 boots failed in a row");
  CHECK_FALSE(status_of(scene)["nodesets"][0].contains("paused"));
}

TEST_CASE("status: a pause is told apart from the breaker's stop", "[sweeper]") {
  Scene scene;
  scene.shot.pauses["a"] = {.by = "ann", .reason = "new image", .since = {}};
  CHECK(status_of(scene)["nodesets"][0]["paused"] == "paused by ann: new image");
  // As long as the file cannot be read.
  scene.shot.pauses.clear();
  scene.memory.stopped["a"].why = "paused by ann: new image";
  scene.memory.stopped["a"].is_paused = true;
  const Json set = status_of(scene)["nodesets"][0];
  CHECK(set["paused"] == "paused by ann: new image");
  CHECK(set["stopped"] == "paused by ann: new image");
}

TEST_CASE("status: a waiting request tells since when, where, and when it is given up",
          "[sweeper]") {
  Scene scene;
  scene.set().provision_timeout = hours{2};
  scene.waiting_job(7, "a-[0-1]");
  ResizeRequest& request = scene.asked(7, "a-[0-1]");
  request.created = scene.shot.now - minutes{5};
  request.last_attempt =
      ProviderError{"ZONE_RESOURCE_POOL_EXHAUSTED", "none left", scene.shot.now + hours{1}};
  const Json json = status_of(scene)["requests"][0];
  CHECK(json["state"] == "ACCEPTED");
  CHECK(json["waited_seconds"] == 300);
  CHECK(json["gives_up"] == "2027-01-15T09:55:00Z");
  CHECK(json["estimate"] == "2027-01-15T09:00:00Z");
  CHECK(json["zones"] == Json{"us-central1-a", "us-central1-b"});
  CHECK(json["step"] == 0);
  CHECK(json["mode"] == "queued");
  CHECK_FALSE(json.contains("retry_at"));
}

TEST_CASE("status: who waits for ever gives nothing up", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-0");
  scene.asked(7, "a-0");
  CHECK_FALSE(status_of(scene)["requests"][0].contains("gives_up"));
}

TEST_CASE("status: a failed request tells when it is tried again", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]", RequestState::Failed).error = ProviderError{"STOCKOUT", "no", {}};
  scene.memory.retries[{"a-0"}] = {
      .attempts = 2, .refusals = 0, .next = scene.shot.now + minutes{2}, .why = "no"};
  const Json json = status_of(scene);
  CHECK(json["requests"][0]["retry_at"] == "2027-01-15T08:02:00Z");
  CHECK_FALSE(json["requests"][0].contains("waited_seconds"));
  CHECK(json["retries"] == Json::array({{{"nodes", "a-0"},
                                         {"n", 1},
                                         {"attempts", 2},
                                         {"refusals", 0},
                                         {"next", "2027-01-15T08:02:00Z"},
                                         {"why", "no"}}}));
}

TEST_CASE("status: ways that are shut are told with whom, until when and why", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.memory.shut["a job 7"].ways = {
      {{"test-a-zc"}, {.failures = 2, .next = scene.shot.now + minutes{2}, .why = "no"}},
      {{"test-a-zd"}, {.failures = 0, .next = kNotThisWait, .why = "cancelled by root"}},
      {{"test-a-ze"}, {.failures = 1, .next = scene.shot.now, .why = "open again"}}};
  // One that waits no longer.
  scene.memory.shut["a job 8"].ways = {{{"test-a"}, {.failures = 1, .next = kNotThisWait}}};
  const Json json = status_of(scene);
  const Json zc = {{"nodeset", "a"},
                   {"job", 7},
                   {"nodes", "a-[0-1]"},
                   {"n", 2},
                   {"group", "test-a-zc"},
                   {"failures", 2},
                   {"whole_wait", false},
                   {"until", "2027-01-15T08:02:00Z"},
                   {"why", "no"}};
  const Json zd = {{"nodeset", "a"},
                   {"job", 7},
                   {"nodes", "a-[0-1]"},
                   {"n", 2},
                   {"group", "test-a-zd"},
                   {"failures", 0},
                   {"whole_wait", true},
                   {"why", "cancelled by root"}};
  CHECK(json["shut_ways"] == Json::array({zc, zd}));
  CHECK(status_of(Scene{})["shut_ways"] == Json::array());
}

TEST_CASE("status: a lane of a race has its own zones", "[sweeper]") {
  Scene scene;
  scene.set().race = 2;
  scene.owned("hpc-a-zb")
      .requests.push_back(request("j7-x", RequestState::Accepted, names_in("a-0")));
  CHECK(status_of(scene)["requests"][0]["zones"] == Json{"us-central1-b"});
}

TEST_CASE("status: VMs that are alike are one row", "[sweeper]") {
  Scene scene;
  scene.running_job(8, "a-[0-3]");
  serve(scene, 8, "a-[0-3]", hours{1});
  scene.entry("a-2").terminates = scene.shot.now + hours{1} + Seconds{20};
  const Json rows = status_of(scene)["vms"];
  REQUIRE(rows.size() == 1);
  CHECK(rows[0] == Json{{"nodeset", "a"},
                        {"group", "hpc-a"},
                        {"request", "j8-x"},
                        {"nodes", "a-[0-3]"},
                        {"n", 4},
                        {"status", "up"},
                        {"zone", "us-central1-a"},
                        {"since", "2027-01-15T07:45:00Z"},
                        {"ends", "2027-01-15T09:00:00Z"},
                        {"left_seconds", 3600},
                        {"jobs", {8}},
                        {"jobs_n", 1}});
}

TEST_CASE("status: VMs in other states, or of other jobs, are rows of their own", "[sweeper]") {
  Scene scene;
  scene.running_job(8, "a-0");
  scene.waiting_job(9, "a-1");
  scene.vms("a-[0-2]");
  scene.state("a-2", kIdle);
  scene.owned().instances.push_back(deleting({"a-3"}));
  scene.owned().instances.push_back(dead({"a-4"}));
  scene.owned().instances.push_back(queued({"a-5"}));
  std::map<std::string, std::string> words;
  const Json rows = status_of(scene)["vms"];
  for (const Json& row : rows) words[row["nodes"]] = row["status"];
  CHECK(words ==
        std::map<std::string, std::string>{
            {"a-0", "up"}, {"a-1", "booting"}, {"a-2", "up"}, {"a-3", "leaving"}, {"a-4", "dead"}});
}

TEST_CASE("status: a VM outlives its request: the node knows it, and when it booted", "[sweeper]") {
  Scene scene;
  scene.vms("a-0");
  scene.state("a-0", kIdle);
  scene.entry("a-0").terminates = scene.shot.now + hours{1};
  Node& node = scene.node("a-0");
  node.boot_time = scene.shot.now - hours{2};
  node.extra =
      write_lease({.end = scene.shot.now + hours{1}, .nodeset = "a", .request = "j5-gone"});
  const Json row = status_of(scene)["vms"][0];
  CHECK(row["request"] == "j5-gone");
  CHECK(row["since"] == "2027-01-15T06:00:00Z");
  // A machine that has been up for longer than any VM lives is not the VM's.
  node.boot_time = scene.shot.now - hours{24 * 30};
  CHECK(status_of(scene)["vms"][0]["since"] == "");
}

TEST_CASE("status: jobs that wait come first, with our note; others' words stay out", "[sweeper]") {
  Scene scene;
  Job& running = scene.running_job(8, "a-[2-3]");
  running.start_time = scene.shot.now - minutes{10};
  serve(scene, 8, "a-[2-3]", hours{1});
  Job& waiting = scene.waiting_job(9, "a-[0-1]", hours{4});
  waiting.name = "<script>alert(1)</script>";
  waiting.user = "alice";
  waiting.user_id = 1000;
  waiting.admin_comment = "ticket 12 | flex: waiting for 2 VMs";
  scene.asked(9, "a-[0-1]");
  scene.shot.jobs.items.push_back(job(10, {}, {}));
  scene.shot.jobs.items.back().is_pending = true;
  const Json jobs = status_of(scene)["jobs"];
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0] == Json{{"id", 9},
                        {"name", "<script>alert(1)</script>"},
                        {"user", "alice"},
                        {"state", "waiting"},
                        {"partition", ""},
                        {"nodeset", "a"},
                        {"nodes", "a-[0-1]"},
                        {"n", 2},
                        {"request", "j9-x"},
                        {"since", "2027-01-15T07:59:00Z"},
                        {"time_limit_seconds", 14400},
                        {"ends", ""},
                        {"note", "waiting for 2 VMs"},
                        {"phase", "queued"}});
  CHECK(jobs[1]["state"] == "running");
  CHECK(jobs[1]["since"] == "2027-01-15T07:50:00Z");
  CHECK(jobs[1]["ends"] == "2027-01-15T09:00:00Z");
  CHECK(jobs[1]["user"] == "0");
}

TEST_CASE("status: a job that waits says what for", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  const auto phase = [&] { return status_of(scene)["jobs"][0]["phase"].get<std::string>(); };
  CHECK(phase() == "turn");
  scene.memory.retries[{"a-0"}] = {
      .attempts = 1, .refusals = 0, .next = scene.shot.now + minutes{2}, .why = "no"};
  CHECK(phase() == "retry");
  CHECK(status_of(scene)["jobs"][0]["retry_at"] == "2027-01-15T08:02:00Z");
  scene.asked(7, "a-[0-1]");
  CHECK(phase() == "queued");
  CHECK_FALSE(status_of(scene)["jobs"][0].contains("retry_at"));
  scene.owned().requests[0].state = RequestState::Provisioning;
  CHECK(phase() == "creating");
  scene.owned().requests[0].state = RequestState::Succeeded;
  scene.vms("a-[0-1]");
  CHECK(phase() == "booting");
  // The node that has come least far counts.
  std::erase_if(scene.owned().instances,
                [](const Instance& known) { return known.name.text == "a-1"; });
  scene.memory.retries.clear();
  CHECK(phase() == "turn");
  scene.running_job(8, "a-2");
  CHECK_FALSE(status_of(scene)["jobs"][1].contains("phase"));
}

TEST_CASE("status: VMs that are asked for without a request are being made", "[sweeper]") {
  Scene scene;
  scene.set().mode = Mode::Individual;
  scene.owned().group.kind = GroupKind::Individual;
  scene.waiting_job(7, "a-0");
  scene.owned().instances.push_back(queued({"a-0"}));
  CHECK(status_of(scene)["jobs"][0]["phase"] == "creating");
}

TEST_CASE("status: where it is served, and what leaks", "[sweeper]") {
  const Scene scene;
  Status status;
  status.http = "127.0.0.1:9762";
  status.leaks.push_back(
      {.kind = "vm", .target = "a-7", .since = scene.shot.now, .why = "no node wants it"});
  const Json json = status_of(scene, status);
  CHECK(json["http"] == "127.0.0.1:9762");
  CHECK(json["leaks"] == Json::array({{{"kind", "vm"},
                                       {"target", "a-7"},
                                       {"since", "2027-01-15T08:00:00Z"},
                                       {"why", "no node wants it"}}}));
  CHECK(json["reservations"] == 0);
  CHECK(json["now"].get<std::string>().size() == 20);
}

TEST_CASE("status: comments do not push out what was done", "[sweeper]") {
  Status status;
  status.remember({}, {.rule = Rule::OrphanInstance, .why = "x", .what = DeleteInstances{}}, {});
  for (JobId i = 1; i <= 500; ++i)
    status.remember({}, {.rule = Rule::JobNote, .why = "so", .what = TellJob{.job = i}}, {});
  CHECK(status.actions.size() == 21);
  CHECK(status.actions.front().rule == "orphan_instance");
  for (int i = 0; i < 500; ++i)
    status.remember(
        {}, {.rule = Rule::EmptyMig, .why = std::to_string(i), .what = DeleteGroup{}}, {});
  CHECK(status.actions.size() == 100);
}

TEST_CASE("status: what is refused again and again is one entry, with the error", "[sweeper]") {
  const Scene scene;
  Status status;
  const Action other{.rule = Rule::EmptyMig, .why = "x", .what = DeleteGroup{}};
  const Action refused{.rule = Rule::OrphanInstance, .why = "x", .what = DeleteInstances{}};
  const auto failed = [](int i) { return Outcome{"failed", "denied " + std::to_string(i)}; };
  status.remember(scene.shot.now, refused, failed(0));
  status.remember(scene.shot.now, other, {"done", ""});
  for (int i = 1; i < 37; ++i) status.remember(scene.shot.now + minutes{i}, refused, failed(i));
  const Json actions = status_of(scene, status)["actions"];
  REQUIRE(actions.size() == 2);
  CHECK(actions[0]["result"] == "done");
  CHECK(actions[0]["times"] == 1);
  CHECK_FALSE(actions[0].contains("error"));
  CHECK(actions[1]["result"] == "failed");
  CHECK(actions[1]["error"] == "denied 36");
  CHECK(actions[1]["times"] == 37);
  CHECK(actions[1]["first"] == "2027-01-15T08:00:00Z");
  CHECK(actions[1]["time"] == "2027-01-15T08:36:00Z");
  // When it works at last, that is another thing.
  status.remember(scene.shot.now + minutes{40}, refused, {"done", ""});
  CHECK(status_of(scene, status)["actions"].size() == 3);
}

TEST_CASE("status: what an earlier sweeper has done is recalled", "[sweeper]") {
  Status status;
  Event event;
  event.program = "flex-sweeper";
  event.what = "delete_instances";
  event.rule = "orphan_instance";
  event.group = "hpc-a";
  event.nodes = "a-0";
  event.why = "its node is powered down";
  event.when = TimePoint{Seconds{1'800'000'000}};
  event.more = {{"result", "failed"}, {"error", "no"}};
  status.recall(event);
  status.recall(event);
  event.rule.clear();
  status.recall(event);  // something that it saw
  const Json actions = status_of(Scene{}, status)["actions"];
  CHECK(actions == Json::array({{{"time", "2027-01-15T08:00:00Z"},
                                 {"first", "2027-01-15T08:00:00Z"},
                                 {"times", 2},
                                 {"rule", "orphan_instance"},
                                 {"what", "delete_instances"},
                                 {"target", "hpc-a"},
                                 {"nodes", "a-0"},
                                 {"job", 0},
                                 {"why", "its node is powered down"},
                                 {"result", "failed"},
                                 {"error", "no"}}}));
}

// ---- how big it gets ----

TEST_CASE("status: 10,000 nodes are tens of kB", "[sweeper]") {
  constexpr int kNodes = 10000;
  Scene scene(kNodes);
  for (int i = 0; i < 100; ++i) {
    const auto list = "a-[" + std::to_string(i * 64) + "-" + std::to_string(i * 64 + 63) + "]";
    const auto id = static_cast<JobId>(i + 1);
    if (i % 4 == 0) {
      scene.waiting_job(id, list);
      scene.asked(id, list);
    } else {
      scene.running_job(id, list);
      serve(scene, id, list, hours{1} + minutes{i});
    }
  }
  const std::string text = to_json_text({}, scene.settings, scene.shot, scene.memory);
  CHECK(text.size() < 100'000);
  CHECK(Json::parse(text)["vms"].size() == 75);
}

TEST_CASE("status: as many jobs as nodes are folded and cut, and say so", "[sweeper]") {
  Scene scene(2000);
  for (int i = 0; i < 2000; ++i) {
    const std::string name = "a-" + std::to_string(i);
    scene.running_job(static_cast<JobId>(i + 1), name);
    serve(scene, static_cast<JobId>(i + 1), name, hours{1} + Seconds{i * 60});
  }
  const std::string text = to_json_text({}, scene.settings, scene.shot, scene.memory);
  const Json json = Json::parse(text);
  CHECK(json["jobs"].size() == 300);
  CHECK(json["jobs_omitted"] == 1700);
  CHECK(json["requests_omitted"] == 1700);
  CHECK(json["vms"].size() < 300);
  CHECK_FALSE(json.contains("vms_omitted"));
  std::size_t vms = 0;
  for (const Json& row : json["vms"]) {
    vms += row["n"].get<std::size_t>();
    CHECK(row["jobs"].size() <= 16);
  }
  CHECK(vms == 2000);
  CHECK(text.size() < 500'000);
}

TEST_CASE("status: however many wait, those that run are told", "[sweeper]") {
  Scene scene(800);
  for (int i = 0; i < 800; ++i) {
    const std::string name = "a-" + std::to_string(i);
    const auto id = static_cast<JobId>(i + 1);
    if (i < 400)
      scene.waiting_job(id, name);
    else
      scene.running_job(id, name);
    if (i < 350) scene.asked(id, name);
  }
  const Json json = status_of(scene);
  std::map<std::string, int> states;
  for (const Json& job : json["jobs"]) ++states[job["state"]];
  CHECK(states == std::map<std::string, int>{{"waiting", 300}, {"running", 300}});
  CHECK(json["jobs_waiting_omitted"] == 100);
  CHECK(json["jobs_running_omitted"] == 100);
  CHECK(json["jobs_omitted"] == 200);
  CHECK(json["active_requests"] == 350);
}
