// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/explain/story.h"
#include "sweeper/rules.h"
#include "test/support/catch.h"
#include "test/support/scene.h"

#include <fmt/format.h>

using namespace flex;
using namespace flex::test;
using Catch::Matchers::Contains;

namespace {

/// A scene and its history.
struct Teller : Scene {
  Utc utc{};
  std::vector<Event> events{};
  bool has_slurm = true;
  bool has_cloud = true;
  TimePoint last_sweep{};

  Teller() { last_sweep = shot.now; }

  Event& happened(const std::string& what, const std::string& hostlist, JobId id = 0) {
    Event& event = events.emplace_back();
    event.when = shot.now;
    event.program = "flex-sweeper";
    event.what = what;
    event.job = id;
    if (!hostlist.empty()) set_nodes(event, names_in(hostlist));
    return event;
  }

  Event& of_request(const std::string& what,
                    const std::string& hostlist,
                    JobId id,
                    const std::string& request) {
    Event& event = happened(what, hostlist, id);
    event.group = "hpc-a";
    event.request = request;
    return event;
  }

  void later(int seconds) { last_sweep = shot.now += Seconds{seconds}; }

  [[nodiscard]] Facts facts() const {
    return {.config = settings,
            .shot = shot,
            .memory = memory,
            .last_sweep = last_sweep,
            .has_slurm = has_slurm,
            .has_cloud = has_cloud,
            .notes = {}};
  }

  [[nodiscard]] Story tell(const std::string& subject, std::size_t most = 200) const {
    const auto found = find_subject(subject, events, facts());
    REQUIRE(found);
    return tell_story(*found, events, facts(), most);
  }

  /// "what request|nodes" of each line that comes from the history.
  [[nodiscard]] Texts whats(const std::string& subject) const {
    Texts texts;
    for (const StoryLine& line : tell(subject).lines) {
      if (line.event.what.empty()) continue;
      texts.push_back(line.event.what + " " +
                      (line.event.request.empty() ? line.event.nodes : line.event.request));
    }
    return texts;
  }
};

}  // namespace

TEST_CASE("explain: what was typed", "[ctl]") {
  Teller teller;
  teller.asked(7, "a-0", RequestState::Accepted, "j7-x");
  teller.of_request("requested", "a-1", 8, "j8-old");
  Job task = job(21, {}, std::nullopt);
  task.array_job_id = 20;
  task.array_task = 3;
  teller.shot.jobs.items.push_back(task);
  const auto kind = [&](const std::string& text) {
    const auto found = find_subject(text, teller.events, teller.facts());
    return found ? found->kind : Subject::Kind{99};
  };
  CHECK(kind("12") == Subject::Kind::Job);
  CHECK(kind("20_3") == Subject::Kind::Job);
  CHECK(find_subject("20_3", {}, teller.facts())->job == 21);
  Job part = job(31, {}, std::nullopt);
  part.het_job_id = 30;
  teller.shot.jobs.items.push_back(part);
  CHECK(find_subject("30+1", {}, teller.facts())->job == 31);
  CHECK(kind("hpc-a/j7-x") == Subject::Kind::Request);
  CHECK(kind("a-5") == Subject::Kind::Node);
  CHECK(kind("j7-x") == Subject::Kind::Request);
  CHECK(kind("j8-old") == Subject::Kind::Request);
  for (const char* text :
       {"", "0", "b-5", "20_4", "30+2", "j9-x", "hpc-b/j7-x", "-1", "99999999999", "a-[0-1]"}) {
    CAPTURE(text);
    CHECK_FALSE(find_subject(text, teller.events, teller.facts()));
  }
}

TEST_CASE("explain: a job that waits", "[ctl]") {
  Teller teller;
  Job& job = teller.waiting_job(7, "a-[0-1]", std::chrono::hours{4});
  job.submit_time = teller.shot.now - Seconds{10};
  job.start_time = teller.shot.now;
  job.partition = "gpu";
  teller.set().provision_timeout = std::chrono::hours{2};
  teller.happened("asked", "a-[0-1]", 7).program = "flex-resume";
  Event& requested = teller.of_request("requested", "a-[0-1]", 7, "j7-x");
  requested.program = "flex-resume";
  requested.more = {{"run_s", "15300"},
                    {"how", "TimeLimit 04:00:00 + run_duration_margin 00:15:00"},
                    {"attempt", "1"},
                    {"zones", "us-central1-a"}};
  ResizeRequest& request = teller.asked(7, "a-[0-1]");
  request.created = teller.shot.now;
  teller.later(15);
  teller.of_request("queued", "a-[0-1]", 7, "j7-x");
  Event& attempt = teller.of_request("attempt", "a-[0-1]", 7, "j7-x");
  attempt.more = {
      {"code", "STOCKOUT"}, {"message", "no room"}, {"estimate", "2027-01-15T09:00:00Z"}};
  teller.owned().requests[0].last_attempt =
      ProviderError{.code = "STOCKOUT", .message = "no room", .estimated_availability = {}};
  teller.later(600);
  const Story story = teller.tell("7");
  REQUIRE(story.is_known);
  REQUIRE(story.lines.size() == 6);
  CHECK(story.lines[0].text == "job 7 is submitted to partition gpu, TimeLimit 04:00:00");
  CHECK(story.lines[1].text == "gives job 7 its nodes: a-[0-1]");
  CHECK(story.lines[2].text == "is run by slurmctld for a-[0-1] (2 nodes) for job 7");
  CHECK(story.lines[3].text ==
        "requests 2 VMs: j7-x for job 7 in group hpc-a, nodes a-[0-1], to live 04:15:00 (TimeLimit "
        "04:00:00 + run_duration_margin 00:15:00), zones us-central1-a, attempt 1");
  CHECK(story.lines[4].text == "has j7-x in its queue");
  CHECK_THAT(story.lines[5].text, Contains("cannot serve j7-x yet: STOCKOUT: no room; estimates"));
  CHECK(story.lines[4].who == "Google");
  CHECK_THAT(story.now, Contains("Request j7-x waits in Google's queue since 08:00:00 (10 min)"));
  CHECK_THAT(story.now, Contains("Google says STOCKOUT: no room"));
  CHECK_THAT(story.now, Contains("gives up at 10:00:00 (in 1 h 49 min)"));
  CHECK(story.notes.empty());
  // The same of its node and of its request.
  CHECK_THAT(teller.tell("a-1").now, Contains("Request j7-x waits in Google's queue"));
  CHECK_THAT(teller.tell("j7-x").now, Contains("gives up at 10:00:00"));
  CHECK(teller.whats("j7-x") == Texts{"requested j7-x", "queued j7-x", "attempt j7-x"});
}

TEST_CASE("explain: a job whose request failed, and the next attempt", "[ctl]") {
  Teller teller;
  teller.waiting_job(7, "a-0");
  teller.of_request("requested", "a-0", 7, "j7-1");
  teller.later(20);
  Event& failed = teller.of_request("failed", "a-0", 7, "j7-1");
  failed.more = {{"code", "LIMIT_EXCEEDED"}, {"message", "too late"}};
  // Another job's, at the same time.
  teller.of_request("failed", "a-5", 9, "j9-1");
  teller.memory.retries[{"a-0"}] = {
      .attempts = 1, .refusals = 0, .next = teller.shot.now + Seconds{60}, .why = "too late"};
  teller.asked(7, "a-0", RequestState::Failed, "j7-1").error =
      ProviderError{.code = "LIMIT_EXCEEDED", .message = "too late", .estimated_availability = {}};
  CHECK(teller.whats("7") == Texts{"requested j7-1", "failed j7-1"});
  CHECK_THAT(teller.tell("7").lines.back().text,
             Contains("given up on j7-1: LIMIT_EXCEEDED: too late"));
  CHECK_THAT(teller.tell("7").now,
             Contains("The next attempt is at 08:01:20 (in 1 min), after 1 failed"));
  CHECK_THAT(teller.tell("j7-1").now,
             Contains("Google has given up on it: LIMIT_EXCEEDED: too late. The next"));
  teller.later(120);
  CHECK_THAT(teller.tell("7").now, Contains("asks again in its next round"));
  teller.memory.stopped["a"].why = "3 boots failed";
  CHECK_THAT(teller.tell("7").now, Contains("Nodeset a is stopped: 3 boots failed"));
}

TEST_CASE("explain: a job that runs, and when its VMs end", "[ctl]") {
  Teller teller;
  Job& job = teller.running_job(7, "a-[0-1]");
  job.start_time = teller.shot.now;
  job.end_time = teller.shot.now + Seconds{3600};
  job.time_limit = Seconds{3600};
  teller.vms("a-[0-1]");
  for (Instance& vm : teller.owned().instances) vm.terminates = teller.shot.now + Seconds{4500};
  teller.later(60);
  CHECK(teller.tell("7").now ==
        "The job runs since 08:00:00 (1 min) on a-[0-1]; its VMs end at 09:15:00 (in 1 h 14 min), "
        "after its time limit at 09:00:00.");
  teller.entry("a-1").terminates = teller.shot.now + Seconds{600};
  CHECK_THAT(teller.tell("7").now, Contains("before its time limit: it is requeued then."));
  CHECK_THAT(teller.tell("a-1").now, Contains("The node is up; job 7 is on it. VM a-1"));
  CHECK_THAT(teller.tell("a-1").now, Contains("it ends at 08:11:00"));
}

TEST_CASE("explain: a node lost at the end of its lease", "[ctl]") {
  Teller teller;
  teller.happened("job_started", "a-[0-1]", 7);
  Event& up = teller.of_request("vm_up", "a-[0-1]", 7, "j7-x");
  up.more["ends"] = "2027-01-15T08:10:00Z";
  teller.later(600);
  Event& gone = teller.of_request("vm_gone", "a-0", 7, "j7-x");
  gone.more = {{"ended", "lease_end"}, {"ends", "2027-01-15T08:10:00Z"}};
  Event& down = teller.happened("DOWN", "a-0");
  down.rule = "unbacked_node";
  down.why = "its VM's run duration is over";
  down.more["result"] = "ok";
  teller.happened("job_ended", "a-[0-1]", 7).more["state"] = "REQUEUED";
  teller.happened("POWER_DOWN", "a-1");
  const Texts told{"job_started a-[0-1]", "vm_up j7-x", "vm_gone j7-x", "DOWN a-0"};
  CHECK(teller.whats("a-0") == Texts{told[0], told[1], told[2], told[3], "job_ended a-[0-1]"});
  // The job's story ends where it has its nodes no more.
  CHECK(teller.whats("7") == Texts{told[0], told[1], told[2], told[3], "job_ended a-[0-1]"});
  const Story story = teller.tell("a-0");
  CHECK(story.lines[2].text == "VM is gone, at the end of the run duration (08:10:00): a-0");
  CHECK(story.lines[3].text == "DOWN a-0: its VM's run duration is over (rule unbacked_node)");
  CHECK(story.lines[4].text == "job 7 goes back to Slurm's queue");
  CHECK_THAT(story.now, Contains("The node is powered down"));
  const Story job = teller.tell("7");
  REQUIRE(job.notes.size() == 1);
  CHECK(job.notes[0] == "Slurm does not know job 7 any more; from the history:");
}

TEST_CASE("explain: an orphan", "[ctl]") {
  Teller teller;
  teller.of_request("vm_up", "a-3", 7, "j7-x");
  teller.vms("a-3");
  const std::string id = teller.entry("a-3").id;
  CHECK_THAT(teller.tell("a-3").now,
             Contains("VM a-3 (id " + id +
                      ") in us-central1-a, group hpc-a, runs, but nobody wants "
                      "it. It came from request j7-x, for job 7."));
  CHECK_THAT(teller.tell("a-3").now, Contains("orphan_grace (3 min)"));
  teller.memory.see(
      "orphan_instance", key_of(teller.owned(), teller.entry("a-3")), teller.shot.now);
  teller.later(60);
  CHECK_THAT(teller.tell("a-3").now,
             Contains("Nobody wants it since 08:00:00 (1 min); the sweeper deletes it at 08:03:00 "
                      "(in 2 min)."));
}

TEST_CASE("explain: a request that is over", "[ctl]") {
  Teller teller;
  teller.of_request("requested", "a-[0-1]", 7, "j7-x");
  teller.of_request("vm_up", "a-[0-1]", 7, "j7-x");
  teller.vms("a-[0-1]");
  CHECK_THAT(teller.tell("j7-x").now, Contains("Google does not list it any more"));
  CHECK_THAT(teller.tell("j7-x").now, Contains("2 of its VMs are there"));
  teller.later(10);
  teller.happened("registered", "a-0");
  teller.later(10);
  teller.of_request("requested", "a-0", 8, "j8-x");
  teller.happened("registered", "a-0");
  CHECK(teller.whats("j7-x") == Texts{"requested j7-x", "vm_up j7-x", "registered a-0"});
}

TEST_CASE("explain: what is missing is told, and what is old is left out", "[ctl]") {
  Teller teller;
  teller.waiting_job(7, "a-0");
  for (int i = 0; i < 10; ++i) teller.happened("asked", "a-0", 7);
  teller.happened("calls", "a-0");
  const Story story = teller.tell("7", 4);
  CHECK(story.lines.size() == 4);
  CHECK(story.left_out == 6);
  teller.last_sweep -= Seconds{1000};
  REQUIRE(teller.tell("7").notes.size() == 1);
  CHECK_THAT(teller.tell("7").notes[0], Contains("no complete round since"));
  CHECK_FALSE(
      tell_story({.kind = Subject::Kind::Job, .name = "8", .job = 8}, teller.events, teller.facts())
          .is_known);
}

TEST_CASE("explain: a request that only Google knows of", "[ctl]") {
  Teller teller;
  teller.waiting_job(7, "a-[0-1]");
  teller.asked(7, "a-[0-1]");
  const Story story = teller.tell("7");
  REQUIRE(story.lines.size() == 1);
  CHECK(story.lines[0].text ==
        "gets request j7-x for 2 VMs, nodes a-[0-1], to live 01:15:00 (the history does not say "
        "from whom)");
}

TEST_CASE("explain: requests of the same name in several groups are told apart", "[ctl]") {
  Teller teller;
  teller.waiting_job(7, "a-0");
  const auto lane = [&](const std::string& group, RequestState state) {
    ResizeRequest request = teller.asked(7, "a-0", state, "j7-x");
    teller.owned().requests.clear();
    teller.no_vms();
    request.group = {group};
    request.created = teller.shot.now;
    teller.owned(group).requests.push_back(std::move(request));
  };
  lane("hpc-a-zb", RequestState::Accepted);
  lane("hpc-a-zc", RequestState::Failed);
  teller.of_request("queued", "a-0", 7, "j7-x").group = "hpc-a-zb";
  teller.of_request("failed", "a-0", 7, "j7-x").group = "hpc-a-zc";
  const Story both = teller.tell("j7-x");
  CHECK_THAT(both.now,
             Contains("In group hpc-a-zb: Request hpc-a-zb/j7-x waits in Google's queue"));
  CHECK_THAT(both.now, Contains("In group hpc-a-zc: Google has given up on it"));
  // Of the second the history does not say who made it; that it does of the first is another
  // matter.
  REQUIRE(both.lines.size() == 3);
  CHECK_THAT(both.lines[0].text, Contains("gets request hpc-a-zc/j7-x"));
  CHECK(both.lines[1].text == "has hpc-a-zb/j7-x in its queue");
  CHECK(both.lines[1].event.request == "j7-x");
  const Story one = teller.tell("hpc-a-zc/j7-x");
  CHECK(one.title == "Request hpc-a-zc/j7-x");
  CHECK(one.now == "Google has given up on it.");
  CHECK(teller.whats("hpc-a-zb/j7-x") == Texts{"queued j7-x"});
  CHECK_THAT(teller.tell("7").now, Contains("Request hpc-a-zb/j7-x waits"));
}

TEST_CASE("explain: VMs that come one by one", "[ctl]") {
  Teller teller;
  teller.set().mode = Mode::Individual;
  teller.owned().group.kind = GroupKind::Individual;
  teller.waiting_job(7, "a-[0-1]");
  teller.vms("a-[0-1]");
  for (const char* name : {"a-0", "a-1"}) {
    Instance& entry = teller.entry(name);
    entry.status = InstanceStatus::None;
    entry.action = InstanceAction::Creating;
    entry.url.clear();
  }
  CHECK(teller.tell("7").now == "a-[0-1] are asked for one by one and have not come yet.");
  teller.entry("a-1").last_error =
      ProviderError{.code = "STOCKOUT",
                    .message = "no room.",
                    .estimated_availability = teller.shot.now + std::chrono::hours{1}};
  CHECK(teller.tell("7").now ==
        "a-[0-1] are asked for one by one and have not come yet; Google says STOCKOUT: no room; "
        "Google estimates 09:00:00 (in 1 h).");
  CHECK_THAT(
      teller.tell("a-0").now,
      Contains("slurmctld brings the node up. a-0 is asked for one by one and has not come"));
}

TEST_CASE("explain: a bulkInsert that is under way", "[ctl]") {
  Teller teller;
  teller.set().mode = Mode::BulkInsert;
  teller.waiting_job(7, "a-[0-1]");
  teller.shot.is_bulk_under_way = true;
  CHECK_THAT(teller.tell("7").now,
             Contains("A bulkInsert is under way in the region, which may be for a-[0-1]"));
  CHECK_THAT(teller.tell("7").now, !Contains("Nothing is asked of Google"));
}

TEST_CASE("explain: a node of which Slurm says nothing", "[ctl]") {
  Teller teller;
  teller.shot.nodes.items.clear();
  CHECK(teller.tell("a-0").now ==
        "slurmctld does not know this node. Google has no VM of this name, and none is asked for.");
  teller.has_slurm = false;
  CHECK(teller.tell("a-0").now ==
        "What Slurm does with it cannot be seen. Google has no VM of this name, and none is asked "
        "for.");
  teller.has_cloud = false;
  CHECK(teller.tell("a-0").now ==
        "What Slurm does with it cannot be seen. What Google has for it cannot be seen, either.");
  teller.has_cloud = true;
  teller.asked(7, "a-0");
  CHECK_THAT(teller.tell("a-0").now, Contains("Request j7-x waits in Google's queue"));
}

TEST_CASE("explain: what somebody did with flexctl has their name", "[ctl]") {
  Event event;
  event.program = "flexctl";
  event.what = "cancel_request";
  event.request = "j7-x";
  event.more["user"] = "ann";
  CHECK(line_of(event, {}).text == "cancels j7-x (by ann)");
  event.why = "cancelled by ann";
  CHECK(line_of(event, {}).text == "cancels j7-x: cancelled by ann");
}

TEST_CASE("explain: words of an outcome and of text from outside", "[ctl]") {
  Event event;
  event.program = "flex-sweeper";
  event.what = "delete_instances";
  event.nodes = "a-0";
  event.n = 1;
  event.why = "bad\n\x1b[31mtext";
  event.rule = "orphan_instance";
  event.more = {{"result", "failed"}, {"error", "503"}};
  CHECK(line_of(event, {}).text ==
        "deletes 1 VM: a-0: bad  [31mtext (rule orphan_instance) [failed: 503]");
  event.what = "some_new_thing";
  event.more["result"] = "again";
  CHECK_THAT(line_of(event, {}).text, Contains("[not now, looked at again: 503]"));
}
