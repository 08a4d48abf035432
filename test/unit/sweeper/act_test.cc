// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/act.h"

#include "lib/fleet/node_extra.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"
#include "test/support/scene.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace flex;
using namespace flex::test;

namespace {

/// A cloud and a Slurm that a round is carried out on.
struct Stage {
  Scene scene{4};
  FakeCloud cloud{};
  FakeScheduler slurm{};
  std::vector<std::string> lines{};
  std::string serial_dir{};
  bool is_stopping = false;
  AskedFile* asked_file = nullptr;

  Stage() { cloud.add_group("hpc-a", ownership_mark("hpc", "a")); }

  /// Slurm is as the scene has it.
  void settle() {
    slurm.nodes = scene.shot.nodes.items;
    slurm.jobs = scene.shot.jobs.items;
  }

  ActReport carry_out(const std::vector<Action>& actions) {
    const Log log{[this](LogLevel, std::string_view line) { lines.emplace_back(line); },
                  LogLevel::Debug};
    Actor actor{.config = scene.settings,
                .shot = scene.shot,
                .cloud = cloud,
                .scheduler = slurm,
                .memory = scene.memory,
                .log = log,
                .serial_dir = serial_dir,
                .should_stop = [this] { return is_stopping; },
                .asked = {},
                .served = {},
                .asked_file = asked_file};
    return act(actor, actions);
  }

  [[nodiscard]] bool has_logged(const std::string& text) const {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
};

Action action(Rule rule, ActionKind what) {
  return {.rule = rule, .why = "because", .what = std::move(what)};
}

}  // namespace

TEST_CASE("act: a drain that was taken away is forgotten though the lease's end drains the node") {
  Stage stage;
  stage.settle();
  Node& node = *stage.slurm.find_node("a-0");
  node.extra = with_drain_note({}, "fan");
  const auto forget = action(Rule::NodeNote, NoteDrain{.nodes = names_in("a-0"), .reason = {}});
  const auto end = action(Rule::LeaseEnd,
                          UpdateNodes{.request = NodeRequest::Drain,
                                      .nodes = names_in("a-0"),
                                      .reason = "flex: lease ends 11:34"});
  SECTION("ours") {
    CHECK(stage.carry_out({end, forget}).done == 2);
    CHECK(stage.slurm.find_node("a-0")->extra.empty());
  }
  SECTION("an admin's, since the look") {
    node.reason = "fan again";
    node.state |= static_cast<std::uint32_t>(NODE_STATE_DRAIN);
    (void)stage.carry_out({forget});
    CHECK(drain_note(stage.slurm.find_node("a-0")->extra) == "fan");
  }
}

TEST_CASE("act: a drain is not put back where an admin has undrained the node since the look") {
  Stage stage;
  stage.scene.node("a-0").reason = "fan";  // a power-down has taken the drain
  stage.settle();
  const auto drain =
      action(Rule::UnbackedNode,
             UpdateNodes{.request = NodeRequest::Drain, .nodes = names_in("a-0"), .reason = "fan"});
  const bool is_undrained = GENERATE(true, false);
  if (is_undrained) stage.slurm.find_node("a-0")->reason.clear();
  const ActReport report = stage.carry_out({drain});
  CHECK(report.again == (is_undrained ? 1 : 0));
  CHECK(stage.slurm.updates.size() == (is_undrained ? 0 : 1));
}

TEST_CASE(
    "act: requests are made as flex-resume makes them, and each is in the log with its name") {
  Stage stage;
  stage.scene.owned();
  stage.scene.waiting_job(7, "a-[0-1]");
  stage.settle();
  stage.scene.rounds(2);
  const ActReport report = stage.carry_out(stage.scene.actions);
  CHECK(report.failed == 0);
  REQUIRE(stage.cloud.groups.at("hpc-a").requests.size() == 1);
  const ResizeRequest& made = stage.cloud.groups.at("hpc-a").requests[0];
  CHECK(made.nodes == nodes("a", 2));
  CHECK(stage.has_logged("event=action rule=unrequested_node what=ask job=7 nodes=a-[0-1]"));
  CHECK(stage.has_logged("request=" + made.name.text));
}

TEST_CASE("act: what the insert's operation says is listened to") {
  Stage stage;
  stage.scene.owned();
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  stage.scene.rounds(2);
  SECTION("for good: the job is held") {
    stage.cloud.next_operation_error("insert_request",
                                     {.code = "INVALID_ARGUMENT", .message = "no"});
    CHECK(stage.carry_out(stage.scene.actions).failed == 1);
    REQUIRE(stage.slurm.updates.size() == 3);
    CHECK(stage.slurm.updates[0].what == "admin_comment");
    CHECK(stage.slurm.updates[1].what == "requeue_hold");
    CHECK(stage.slurm.updates[2].what == "node POWER_DOWN_FORCE");
  }
  SECTION("a quota: asked again after a pause") {
    stage.cloud.next_operation_error("insert_request",
                                     {.code = "QUOTA_EXCEEDED", .message = "full"});
    CHECK(stage.carry_out(stage.scene.actions).failed == 1);
    CHECK(stage.slurm.updates.empty());
    CHECK(stage.scene.memory.retries.at({"a-0"}).next == stage.scene.shot.now + Seconds{60});
    CHECK(stage.scene.round().empty());
  }
}

TEST_CASE("act: a job that ends while its group is made is not asked for") {
  Stage stage;
  stage.cloud.groups.clear();
  stage.scene.waiting_job(7, "a-[0-1]");
  stage.settle();
  stage.scene.rounds(2);
  const bool is_gone = GENERATE(true, false);
  if (is_gone) stage.slurm.jobs.clear();
  const ActReport report = stage.carry_out(stage.scene.actions);
  CHECK(report.failed == 0);
  CHECK(stage.cloud.count("insert_group") == 1);
  CHECK(stage.cloud.count("insert_request") == (is_gone ? 0 : 1));
  CHECK(stage.has_logged("event=action_again job=7 nodes=a-[0-1]") == is_gone);
  CHECK(report.again == (is_gone ? 1 : 0));
}

TEST_CASE("act: too many active requests is no failure, and is asked again in the next round") {
  Stage stage;
  stage.scene.owned();
  for (const JobId id : {JobId{1}, JobId{2}, JobId{3}})
    stage.scene.waiting_job(id, "a-" + std::to_string(id)).start_time = TimePoint{Seconds{id}};
  stage.settle();
  stage.scene.rounds(2);
  stage.cloud.next_operation_error(
      "insert_request",
      {.code = "QUOTA_EXCEEDED", .message = "Quota 'ACTIVE_RESIZE_REQUESTS' exceeded."});
  stage.cloud.next_error("insert_request",
                         {ErrorKind::Quota, "quota metric 'active_resize_requests'"});
  const ActReport report = stage.carry_out(stage.scene.actions);
  CHECK(report.failed == 0);
  CHECK(report.waiting == 2);
  CHECK(stage.slurm.updates.empty());
  CHECK(stage.scene.memory.retries.empty());
  CHECK(stage.scene.memory.requests.limit == 1);
  CHECK(stage.has_logged("event=waits_for_turn"));
}

TEST_CASE("act: a request whose slot is needed is cancelled before the next is made") {
  Stage stage;
  stage.scene.settings.api.max_active_requests = 1;
  stage.scene.set().on_stockout = {{.wait = Seconds{30}, .zones = {"us-central1-f"}}};
  stage.scene.waiting_job(7, "a-0");
  stage.scene.asked(7, "a-0");
  stage.cloud.add_request("hpc-a", "j7-x", {"a-0"}, RequestState::Accepted);
  stage.settle();
  stage.scene.round();
  SECTION("it is there") {
    CHECK(stage.carry_out(stage.scene.actions).failed == 0);
    CHECK(stage.cloud.groups.at("hpc-a").requests[0].state == RequestState::Cancelled);
    CHECK(stage.cloud.groups.at("hpc-a-s1").requests.size() == 1);
    CHECK(stage.has_logged("event=cancelled job=7 nodes=a-0"));
  }
  SECTION("it is just being served: nothing is asked for, and nothing is wrong") {
    stage.cloud.groups.at("hpc-a").requests[0].state = RequestState::Creating;
    CHECK(stage.carry_out(stage.scene.actions).failed == 0);
    CHECK_FALSE(stage.cloud.groups.contains("hpc-a-s1"));
    for (const auto& update : stage.slurm.updates) CHECK(update.what == "admin_comment");
  }
}

TEST_CASE("act: nodes that others have asked for since the look count for max_nodes") {
  const auto dir =
      std::filesystem::temp_directory_path() / ("flex-act-asked-" + std::to_string(::getpid()));
  std::filesystem::create_directory(dir);
  AskedFile other{dir.string(), "flex-resume"};
  AskedFile own{dir.string(), "flex-sweeper"};
  Stage stage;
  stage.asked_file = &own;
  stage.scene.set().max_nodes = 2;
  stage.scene.owned();
  stage.scene.waiting_job(7, "a-[0-1]");
  stage.settle();
  stage.scene.rounds(2);
  const TimePoint now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  stage.scene.shot.now = now;
  SECTION("none") {
    CHECK(stage.carry_out(stage.scene.actions).failed == 0);
    CHECK(stage.cloud.groups.at("hpc-a").requests.size() == 1);
    const auto asked = own.load();
    REQUIRE(asked);
    REQUIRE(asked->size() == 1);
    CHECK(asked->front().answered >= now);
  }
  SECTION("one") {
    REQUIRE(other.reserve(now, [](const AskedNodes&) { return nodes("a", 1, 3); }));
    const ActReport report = stage.carry_out(stage.scene.actions);
    CHECK(report.failed == 0);
    CHECK(stage.cloud.groups.at("hpc-a").requests.empty());
    CHECK(stage.has_logged("event=waits_for_turn"));
    CHECK(stage.scene.memory.requests.limit == 0);
    CHECK(own.load()->size() == 1);
  }
  std::filesystem::remove_all(dir);
}

TEST_CASE("act: a part of a job is taken back where there is no room for the rest") {
  Stage stage;
  stage.scene.settings = config({nodeset("a", nodes("a", 4)), nodeset("b", nodes("b", 1))});
  stage.cloud.add_group("hpc-b", ownership_mark("hpc", "b"));
  stage.scene.shot.seen_once = {"a", "b"};
  Node more = stage.scene.shot.nodes.items[0];
  more.name = {"b-0"};
  stage.scene.shot.nodes.items.push_back(more);
  stage.scene.owned();
  stage.scene.owned("hpc-b", "b");
  stage.scene.waiting_job(7, "a-0,b-0");
  stage.settle();
  stage.scene.rounds(2);
  stage.cloud.next_error("insert_request",
                         {ErrorKind::Quota, "quota metric 'active_resize_requests'"});
  const ActReport report = stage.carry_out(stage.scene.actions);
  CHECK(report.failed == 0);
  CHECK(report.waiting == 2);
  std::size_t active = 0;
  for (const auto& [name, group] : stage.cloud.groups)
    active += static_cast<std::size_t>(
        std::count_if(group.requests.begin(), group.requests.end(), [](const auto& one) {
          return one.is_active();
        }));
  CHECK(active == 0);
  CHECK(stage.has_logged("event=cancelled job=7"));
  CHECK(stage.scene.memory.requests.limit == 1);
}

TEST_CASE(
    "act: cancelling and deleting what is gone is success; the wrong moment is looked at again") {
  Stage stage;
  stage.cloud.add_request("hpc-a", "j1-x", {"a-0"}, RequestState::Creating);
  const ActReport report = stage.carry_out(
      {action(Rule::StaleRequest,
              CancelRequest{.group = {"hpc-a"}, .request = {"j9-x"}, .nodes = {}, .job = 9}),
       action(Rule::FinishedRequest, DeleteRequest{.group = {"hpc-a"}, .request = {"j9-x"}}),
       action(Rule::EmptyMig, DeleteGroup{.group = {"hpc-gone"}}),
       action(Rule::StaleRequest,
              CancelRequest{.group = {"hpc-a"}, .request = {"j1-x"}, .nodes = {}, .job = 1})});
  CHECK(report.done == 3);
  CHECK(report.again == 1);
  CHECK(report.failed == 0);
}

TEST_CASE("act: one failure stops nothing else") {
  Stage stage;
  stage.settle();
  stage.cloud.next_error("delete_group", {ErrorKind::Retry, "away"});
  const ActReport report = stage.carry_out(
      {action(Rule::EmptyMig, DeleteGroup{.group = {"hpc-a"}}),
       action(Rule::StaticNode,
              UpdateNodes{.request = NodeRequest::PowerUp, .nodes = nodes("a", 2)})});
  CHECK(report.failed == 1);
  CHECK(report.done == 1);
  CHECK(stage.has_logged("event=action_failed rule=empty_mig"));
}

TEST_CASE("act: a node that slurmctld has changed since the look is left alone") {
  Stage stage;
  stage.scene.state("a-[0-1]", kComing);
  stage.settle();
  stage.slurm.find_node("a-0")->state = kComingForJob;
  const ActReport report = stage.carry_out({action(
      Rule::StaleRequest,
      UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = nodes("a", 2), .reason = "x"})});
  CHECK(report.again == 1);
  REQUIRE(stage.slurm.updates.size() == 1);
  CHECK(stage.slurm.updates[0].nodes == std::vector<NodeName>{{"a-1"}});
}

TEST_CASE("act: without slurmctld nothing is written") {
  Stage stage;
  stage.settle();
  stage.slurm.fail_next("load_nodes", {ErrorKind::Retry, "away"});
  const ActReport report = stage.carry_out({action(
      Rule::StaticNode, UpdateNodes{.request = NodeRequest::PowerUp, .nodes = nodes("a", 1)})});
  CHECK(report.failed == 1);
  CHECK(stage.slurm.updates.empty());
}

TEST_CASE("act: comments come before what moves the job, jobs before nodes") {
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  const ActReport report = stage.carry_out(
      {action(Rule::ProvisionTimeout,
              UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = nodes("a", 1)}),
       action(Rule::ProvisionTimeout, RequeueJob{.job = 7, .hold = false, .nodes = nodes("a", 1)}),
       action(Rule::ProvisionTimeout, TellJob{.job = 7, .comment = "flex: x"})});
  CHECK(report.done == 3);
  REQUIRE(stage.slurm.updates.size() == 3);
  CHECK(stage.slurm.updates[0].what == "admin_comment");
  CHECK(stage.slurm.updates[1].what == "requeue");
  CHECK(stage.slurm.updates[2].what == "node POWER_DOWN_FORCE");
  CHECK(stage.scene.memory.notes.at(7) == stage.scene.shot.now);
}

TEST_CASE("act: a comment that was written since the look is not overwritten by how it stands") {
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.scene.waiting_job(8, "a-1");
  stage.settle();
  stage.slurm.jobs[0].admin_comment = "flex: no VMs: request j7-x was cancelled by root";
  const ActReport report =
      stage.carry_out({action(Rule::JobNote, TellJob{.job = 7, .comment = "flex: waiting"}),
                       action(Rule::JobNote, TellJob{.job = 8, .comment = "flex: waiting"})});
  CHECK(report.done == 1);
  CHECK(report.again == 1);
  CHECK(stage.slurm.jobs[0].admin_comment == "flex: no VMs: request j7-x was cancelled by root");
  CHECK(stage.slurm.jobs[1].admin_comment == "flex: waiting");
}

TEST_CASE("act: what others wrote in a node's extra since the look stays") {
  Stage stage;
  stage.scene.node("a-2").extra = "flex(end=5,nodeset=a)";
  stage.settle();
  stage.slurm.find_node("a-1")->extra = "rack 7";
  const NodeLease lease{.end = TimePoint{Seconds{9}}, .nodeset = "a", .request = {}};
  const auto report =
      stage.carry_out({action(Rule::NodeNote, NoteLease{.nodes = nodes("a", 2), .lease = lease}),
                       action(Rule::NodeNote, NoteLease{.nodes = nodes("a", 2, 2), .lease = {}})});
  CHECK(report.failed == 0);
  CHECK(stage.slurm.find_node("a-0")->extra == "flex(end=9,nodeset=a)");
  CHECK(stage.slurm.find_node("a-1")->extra == "rack 7 flex(end=9,nodeset=a)");
  CHECK(stage.slurm.find_node("a-2")->extra.empty());
  CHECK(stage.slurm.find_node("a-3")->extra.empty());
}

TEST_CASE("act: a drain is noted in extra, beside what is there, if it still stands") {
  Stage stage;
  stage.scene.state("a-[0-2]", kIdle | NODE_STATE_DRAIN);
  for (const char* name : {"a-0", "a-1", "a-2"}) stage.scene.node(name).reason = "fan";
  stage.scene.node("a-3").extra = with_drain_note("rack 7", "disk");
  stage.settle();
  // An admin was faster.
  stage.slurm.find_node("a-1")->state = kIdle;
  stage.slurm.find_node("a-2")->reason = "fan and disk";
  const NodeLease lease{.end = TimePoint{Seconds{9}}, .nodeset = "a", .request = {}};
  stage.carry_out({action(Rule::NodeNote, NoteDrain{.nodes = nodes("a", 3), .reason = "fan"}),
                   action(Rule::NodeNote, NoteDrain{.nodes = nodes("a", 1, 3), .reason = {}}),
                   action(Rule::NodeNote, NoteLease{.nodes = nodes("a", 1), .lease = lease})});
  CHECK(stage.slurm.find_node("a-0")->extra == "flex(drained=fan) flex(end=9,nodeset=a)");
  for (const char* name : {"a-1", "a-2"}) CHECK(stage.slurm.find_node(name)->extra.empty());
  CHECK(stage.slurm.find_node("a-3")->extra == "rack 7");
  stage.carry_out({action(Rule::NodeNote, NoteDrain{.nodes = nodes("a", 1), .reason = {}})});
  CHECK(drain_note(stage.slurm.find_node("a-0")->extra) == "fan");
}

TEST_CASE("act: nothing is written to a node whose drain is still to be put back") {
  Stage stage;
  // Any update of a node that is not drained makes slurmctld clear its reason.
  stage.scene.state("a-0", kGoing);
  stage.scene.node("a-0").reason = "fan";
  stage.scene.node("a-0").extra = with_drain_note("flex(end=5,nodeset=a)", "fan");
  stage.settle();
  stage.carry_out({action(Rule::NodeNote, NoteLease{.nodes = nodes("a", 1), .lease = {}})});
  CHECK(read_lease(stage.slurm.find_node("a-0")->extra));
}

TEST_CASE("act: a job is cancelled after it was told why, unless it has moved") {
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  const std::vector<Action> actions{
      action(Rule::ProvisionTimeout, CancelJob{.job = 7, .nodes = nodes("a", 1)}),
      action(Rule::ProvisionTimeout, TellJob{.job = 7, .comment = "flex: no VMs"})};
  CHECK(stage.carry_out(actions).done == 2);
  REQUIRE(stage.slurm.updates.size() == 2);
  CHECK(stage.slurm.updates[0].what == "admin_comment");
  CHECK(stage.slurm.updates[1].what == "cancel");
  stage.settle();
  stage.slurm.find_job(7)->nodes = nodes("a", 1, 1);
  CHECK(stage.carry_out({actions[0]}).again == 1);
}

TEST_CASE("act: a VM that has come in the meantime is not met with a new POWER_UP") {
  Stage stage;
  stage.scene.waiting_job(7, "a-[0-1]");
  stage.scene.asked(7, "a-[0-1]");
  stage.settle();
  stage.cloud.add_instance("hpc-a", "a-1");
  const ActReport report = stage.carry_out({action(Rule::KeepWaiting,
                                                   UpdateNodes{.request = NodeRequest::PowerUp,
                                                               .nodes = nodes("a", 2),
                                                               .reason = {},
                                                               .only_without_vm = true})});
  CHECK(report.done == 1);
  REQUIRE(stage.slurm.updates.size() == 1);
  CHECK(stage.slurm.updates[0].nodes == nodes("a", 1));
  CHECK(stage.scene.memory.armed.at({"a-0"}) == stage.scene.shot.now);
}

TEST_CASE("act: if that cannot be seen, nothing is done") {
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.scene.asked(7, "a-0");
  stage.settle();
  stage.cloud.next_error("fetch_instances", {ErrorKind::Retry, "away"});
  CHECK(stage
            .carry_out({action(Rule::KeepWaiting,
                               UpdateNodes{.request = NodeRequest::PowerUp,
                                           .nodes = nodes("a", 1),
                                           .reason = {},
                                           .only_without_vm = true})})
            .done == 0);
  CHECK(stage.slurm.updates.empty());
}

TEST_CASE("act: the serial log is kept before the VM goes, and its lack does not save the VM") {
  Stage stage;
  const auto dir =
      std::filesystem::temp_directory_path() / ("flex-serial-" + std::to_string(::getpid()));
  stage.serial_dir = dir.string();
  stage.cloud.add_instance("hpc-a", "a-0");
  stage.cloud.add_instance("hpc-a", "a-1");
  stage.cloud.serial_outputs["a-0"] = "kernel panic";
  const std::vector<Instance> doomed = stage.cloud.groups.at("hpc-a").instances;
  const ActReport report = stage.carry_out(
      {action(Rule::BootTimeout,
              DeleteInstances{.group = {"hpc-a"}, .instances = doomed, .keep_serial_log = true})});
  CHECK(report.done == 1);
  std::string kept;
  for (const auto& file : std::filesystem::directory_iterator(dir)) {
    if (file.path().filename().string().rfind("a-0-", 0) != 0) continue;
    std::ifstream in(file.path());
    std::getline(in, kept);
  }
  CHECK(kept == "kernel panic");
  std::filesystem::remove_all(dir);
}

TEST_CASE("act: SIGTERM ends between actions") {
  Stage stage;
  stage.settle();
  stage.is_stopping = true;
  const ActReport report = stage.carry_out(
      {action(Rule::EmptyMig, DeleteGroup{.group = {"hpc-a"}}),
       action(Rule::StaticNode,
              UpdateNodes{.request = NodeRequest::PowerUp, .nodes = nodes("a", 1)})});
  CHECK(report.done == 0);
  CHECK(stage.cloud.groups.contains("hpc-a"));
  CHECK(stage.slurm.updates.empty());
}

TEST_CASE(
    "act: a node that another job has got since the look is left alone, with the same flags") {
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  stage.slurm.jobs[0].id = 8;
  const ActReport report = stage.carry_out(
      {action(Rule::ProvisionTimeout, RequeueJob{.job = 7, .hold = false, .nodes = nodes("a", 1)}),
       action(Rule::ProvisionTimeout,
              UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = nodes("a", 1)})});
  CHECK(report.again == 2);
  CHECK(stage.slurm.updates.empty());
}

TEST_CASE("act: a request that is just being served is not taken from its job") {
  const Rule rule = GENERATE(Rule::ProvisionTimeout, Rule::NoLongerEligible);
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  stage.cloud.add_request("hpc-a", "j7-x", {"a-0"}, RequestState::Provisioning);
  const ActReport report = stage.carry_out(
      {action(rule,
              CancelRequest{
                  .group = {"hpc-a"}, .request = {"j7-x"}, .nodes = nodes("a", 1), .job = 7}),
       action(rule, RequeueJob{.job = 7, .hold = false, .nodes = nodes("a", 1)}),
       action(rule, UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = nodes("a", 1)})});
  CHECK(report.again == 3);
  CHECK(stage.slurm.updates.empty());
}

TEST_CASE("act: when slurmctld goes away in the middle the rest is not tried") {
  Stage stage;
  stage.settle();
  stage.slurm.fail_next("update_nodes", {ErrorKind::Retry, "away"}, 9);
  const ActReport report = stage.carry_out(
      {action(Rule::StaticNode,
              UpdateNodes{.request = NodeRequest::PowerUp, .nodes = nodes("a", 1)}),
       action(Rule::StaticNode,
              UpdateNodes{.request = NodeRequest::PowerUp, .nodes = nodes("a", 1, 1)})});
  CHECK(report.failed == 1);
}

TEST_CASE("act: a warning is the signal, a line in the output and, last, the comment") {
  Stage stage;
  stage.scene.running_job(7, "a-0");
  stage.settle();
  const auto warn = action(Rule::LeaseEnd,
                           WarnJob{.job = 7,
                                   .signal = 23,
                                   .line = "flex: soon",
                                   .comment = "flex: warned",
                                   .ends = stage.scene.shot.now + Seconds{60},
                                   .restart_count = 1});
  SECTION("all of it") {
    CHECK(stage.carry_out({warn}).done == 1);
    REQUIRE(stage.slurm.updates.size() == 3);
    CHECK(stage.slurm.updates[0].signal == 23);
    CHECK(stage.slurm.updates[1].text == "flex: soon");
    CHECK(stage.slurm.updates[2].what == "admin_comment");
    CHECK(stage.scene.memory.warned.at(7).restart_count == 1);
    CHECK(stage.has_logged("rule=lease_end what=warn_job job=7 text=\"flex: warned\""));
  }
  SECTION("without a line it is one still") {
    stage.slurm.fail_next("notify_job", {ErrorKind::Precondition, "no output"});
    CHECK(stage.carry_out({warn}).done == 1);
    CHECK(stage.scene.memory.warned.contains(7));
  }
  SECTION("without the signal it is tried again") {
    stage.slurm.fail_next("signal_job", {ErrorKind::Retry, "away"});
    CHECK(stage.carry_out({warn}).failed == 1);
    CHECK(stage.scene.memory.warned.empty());
  }
  SECTION("without the comment it is not signalled again") {
    stage.slurm.fail_next("set_admin_comment", {ErrorKind::Retry, "away"});
    CHECK(stage.carry_out({warn}).failed == 1);
    CHECK(stage.scene.memory.warned.contains(7));
  }
  SECTION("a job that is over is no failure") {
    stage.slurm.jobs.clear();
    const ActReport report = stage.carry_out({warn});
    CHECK(report.failed == 0);
    CHECK(report.again == 1);
  }
  SECTION("none is asked for") {
    Action silent = warn;
    std::get<WarnJob>(silent.what).signal = 0;
    stage.carry_out({silent});
    CHECK(stage.slurm.updates[0].what == "notify");
  }
}

TEST_CASE("act: a reservation ends up as it is wanted, whatever became of it since the look") {
  Stage stage;
  stage.settle();
  const Reservation wanted{.name = "flex-eol-20270115T1000",
                           .nodes = nodes("a", 2),
                           .start = TimePoint{Seconds{100}},
                           .end = TimePoint{Seconds{200}}};
  const bool is_new = GENERATE(true, false);
  const bool is_there = GENERATE(true, false);
  if (is_there) {
    stage.slurm.reservations.push_back(wanted);
    stage.slurm.reservations.back().nodes = nodes("a", 1, 3);
  }
  const ActReport report =
      stage.carry_out({action(Rule::LeaseEnd, SetReservation{wanted, is_new})});
  CHECK(report.done == 1);
  REQUIRE(stage.slurm.reservations.size() == 1);
  CHECK(stage.slurm.reservations[0].nodes == wanted.nodes);
  CHECK(stage.slurm.reservations[0].start == wanted.start);
}

TEST_CASE("act: what could not be made takes nobody's place") {
  Stage stage;
  stage.settle();
  const Reservation old{.name = "old",
                        .nodes = nodes("a", 2),
                        .start = TimePoint{Seconds{100}},
                        .end = TimePoint{Seconds{200}}};
  Reservation made = old;
  made.name = "new";
  Reservation less = old;
  less.nodes = nodes("a", 1);
  stage.slurm.reservations = {old};
  const std::vector<Action> actions{action(Rule::LeaseEnd, SetReservation{made, true, false}),
                                    action(Rule::LeaseEnd, SetReservation{less, false, true}),
                                    action(Rule::LeaseEnd, DeleteReservation{.name = "old"})};
  SECTION("it fails: all stays as it is") {
    stage.slurm.fail_next("create_reservation", Error{ErrorKind::Invalid, "no"});
    const ActReport report = stage.carry_out(actions);
    CHECK(report.failed == 1);
    CHECK(report.again == 2);
    REQUIRE(stage.slurm.reservations.size() == 1);
    CHECK(stage.slurm.reservations[0].nodes == old.nodes);
    CHECK(stage.has_logged("what takes its place could not be made"));
  }
  SECTION("it is made") {
    CHECK(stage.carry_out(actions).done == 3);
    REQUIRE(stage.slurm.reservations.size() == 1);
    CHECK(stage.slurm.reservations[0].name == "new");
  }
}

TEST_CASE("act: a reservation is deleted and made anew in this order; one that is gone is gone") {
  Stage stage;
  stage.settle();
  const Reservation wanted{.name = "r",
                           .nodes = nodes("a", 2),
                           .start = TimePoint{Seconds{100}},
                           .end = TimePoint{Seconds{200}}};
  stage.slurm.reservations.push_back(wanted);
  const ActReport report =
      stage.carry_out({action(Rule::LeaseEnd, DeleteReservation{.name = "r"}),
                       action(Rule::LeaseEnd, SetReservation{wanted, true}),
                       action(Rule::LeaseEnd, DeleteReservation{.name = "gone"})});
  CHECK(report.done == 3);
  REQUIRE(stage.slurm.updates.size() == 2);
  CHECK(stage.slurm.updates[0].what == "delete_reservation");
  CHECK(stage.slurm.updates[1].what == "create_reservation");
  // Neither nodes nor jobs need another look for that.
  CHECK(std::count(stage.slurm.calls.begin(), stage.slurm.calls.end(), "load_nodes") == 0);
}

TEST_CASE("act: a node that slurmctld is about to wake is powered down in a later round") {
  constexpr std::uint32_t kWaking = kComing | NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP;
  Stage stage;
  stage.scene.state("a-[0-1]", kComing);
  stage.settle();
  // keep_waiting's own POWER_UP, or an admin's, since the look.
  stage.slurm.find_node("a-0")->state = kWaking;
  const ActReport report = stage.carry_out(
      {action(Rule::StaleRequest,
              UpdateNodes{.request = NodeRequest::PowerDownForce, .nodes = nodes("a", 2)})});
  CHECK(report.again == 1);
  CHECK(report.waking == nodes("a", 1));
  REQUIRE(stage.slurm.updates.size() == 1);
  CHECK(stage.slurm.updates[0].nodes == nodes("a", 1, 1));
  CHECK(stage.has_logged("has not carried out its POWER_UP yet"));
}

TEST_CASE("act: what becomes of a job does not depend on the power flags of its nodes") {
  constexpr std::uint32_t kWaking = kComingForJob | NODE_STATE_POWERED_DOWN | NODE_STATE_POWER_UP;
  Stage stage;
  stage.scene.waiting_job(7, "a-0");
  stage.settle();
  const std::vector<Action> hold{
      action(Rule::ByHand, RequeueJob{.job = 7, .hold = true, .nodes = nodes("a", 1)})};
  SECTION("a POWER_UP since the look") {
    stage.slurm.find_node("a-0")->state = kWaking;
    CHECK(stage.carry_out(hold).done == 1);
    REQUIRE(stage.slurm.updates.size() == 1);
    CHECK(stage.slurm.updates[0].what == "requeue_hold");
  }
  SECTION("but on the job: in another life it is left alone") {
    ++stage.slurm.find_job(7)->restart_count;
    CHECK(stage.carry_out(hold).again == 1);
    CHECK(stage.slurm.updates.empty());
  }
  SECTION("a rule does not take the job from a node that has come up") {
    stage.slurm.find_node("a-0")->state = kBusy;
    CHECK(stage
              .carry_out({action(Rule::ProvisionTimeout,
                                 RequeueJob{.job = 7, .hold = true, .nodes = nodes("a", 1)})})
              .again == 1);
    CHECK(stage.slurm.updates.empty());
  }
}
