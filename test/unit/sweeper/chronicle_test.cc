// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/chronicle.h"

#include "test/support/catch.h"
#include "test/support/scene.h"

using namespace flex;
using namespace flex::test;

namespace {

/// A scene that is looked at round by round.
struct Watch : Scene {
  Chronicle known{};
  std::vector<Event> events{};

  Watch() { look(); }

  /// "what nodes request job=N key=value…" of what has changed.
  Texts look(std::size_t most = kMostChanges) {
    shot.now += Seconds{15};
    events = chronicle(settings, shot, known, most);
    Texts texts;
    for (const Event& event : events) {
      std::string text = event.what + " " + event.nodes;
      if (!event.request.empty()) text += " " + event.request;
      if (event.job != 0) text += " job=" + std::to_string(event.job);
      for (const char* key : {"ended", "code", "state", "started"}) {
        if (event.more.contains(key)) text += " " + event.more.at(key);
      }
      texts.push_back(std::move(text));
    }
    return texts;
  }

  /// As the sweeper does when it is started again.
  void restart() {
    auto again = parse_chronicle(to_text(known));
    REQUIRE(again);
    known = std::move(*again);
  }

  ResizeRequest& request_of(std::size_t index = 0) { return owned().requests.at(index); }

  void end_at(TimePoint ends) {
    for (Instance& instance : owned().instances) instance.terminates = ends;
  }
};

ProviderError attempt_error(const std::string& code, const std::string& message) {
  return {.code = code, .message = message, .estimated_availability = {}};
}

}  // namespace

TEST_CASE("chronicle: the first look is only remembered", "[sweeper]") {
  Scene scene;
  scene.waiting_job(7, "a-[0-1]");
  scene.asked(7, "a-[0-1]");
  scene.running_job(8, "a-2");
  scene.vms("a-2");
  Chronicle known;
  CHECK(chronicle(scene.settings, scene.shot, known).empty());
  CHECK(chronicle(scene.settings, scene.shot, known).empty());
  CHECK(known.requests.size() == 1);
  CHECK(known.vms.size() == 1);
  CHECK(known.jobs.size() == 2);
}

TEST_CASE("chronicle: a request from the queue to its VMs and its job's end", "[sweeper]") {
  Watch watch;
  watch.waiting_job(7, "a-[0-1]");
  watch.asked(7, "a-[0-1]", RequestState::Creating);
  CHECK(watch.look().empty());
  watch.request_of().state = RequestState::Accepted;
  CHECK(watch.look() == Texts{"queued a-[0-1] j7-x job=7"});
  CHECK(watch.events[0].more.at("attempt") == "1");
  CHECK(watch.look().empty());

  watch.request_of().last_attempt = attempt_error("RESOURCE_AVAILABILITY", "no room");
  watch.restart();
  CHECK(watch.look() == Texts{"attempt a-[0-1] j7-x job=7 RESOURCE_AVAILABILITY"});
  CHECK(watch.look().empty());

  watch.request_of().state = RequestState::Succeeded;
  watch.vms("a-[0-1]");
  watch.end_at(watch.shot.now + Seconds{3600});
  CHECK(watch.look() == Texts{"succeeded a-[0-1] j7-x job=7", "vm_up a-[0-1] j7-x job=7"});
  CHECK(watch.events[1].more.at("zone") == "us-central1-a");
  CHECK(watch.events[1].more.contains("ends"));
  CHECK(watch.events[0].more.contains("waited_s"));

  watch.shot.jobs.items[0].is_configuring = false;
  watch.state("a-[0-1]", kBusy);
  CHECK(watch.look() == Texts{"registered a-[0-1] j7-x job=7", "job_started a-[0-1] job=7"});
  watch.restart();
  CHECK(watch.look().empty());

  watch.end_job(7);
  watch.shot.jobs.items[0].state = JOB_COMPLETE;
  CHECK(watch.look() == Texts{"job_ended a-[0-1] job=7 COMPLETED"});
  watch.owned().requests.clear();
  watch.state("a-[0-1]", kGoing);
  watch.no_vms();
  CHECK(watch.look() == Texts{"vm_gone a-[0-1] j7-x job=7 deleted"});
  CHECK(watch.look().empty());
  CHECK(watch.known.vms.empty());
  CHECK(watch.known.requests.empty());
  CHECK(watch.known.jobs.empty());
}

TEST_CASE("chronicle: failed, cancelled, and gone behind our back", "[sweeper]") {
  Watch watch;
  watch.waiting_job(7, "a-0");
  watch.asked(7, "a-0");
  watch.asked(8, "a-1");
  watch.asked(9, "a-2");
  CHECK(watch.look().size() == 3);
  watch.request_of(0).state = RequestState::Failed;
  watch.request_of(0).error = attempt_error("LIMIT_EXCEEDED", "too late");
  watch.request_of(1).state = RequestState::Cancelled;
  watch.owned().requests.pop_back();
  CHECK(watch.look() == Texts{"failed a-0 j7-x job=7 LIMIT_EXCEEDED",
                              "cancelled a-1 j8-x job=8",
                              "cancelled a-2 j9-x job=9"});
  CHECK(watch.events[0].more.at("message") == "too late");
  CHECK(watch.events[2].why == "it is no longer listed");
  // What has ended is deleted later, which is no news.
  watch.owned().requests.clear();
  CHECK(watch.look().empty());
}

TEST_CASE("chronicle: a request that has the name of another one is not that one", "[sweeper]") {
  Watch watch;
  watch.asked(7, "a-0").id = "100";
  CHECK(watch.look() == Texts{"queued a-0 j7-x job=7"});
  // Deleted and made again between two looks: both are told.
  watch.request_of().id = "101";
  CHECK(watch.look() == Texts{"cancelled a-0 j7-x job=7", "queued a-0 j7-x job=7"});
  CHECK(watch.events[0].why == "it is no longer listed");
  CHECK(watch.look().empty());
  // One that has ended, and its successor, also across a restart.
  watch.request_of().state = RequestState::Failed;
  CHECK(watch.look() == Texts{"failed a-0 j7-x job=7"});
  watch.restart();
  watch.request_of().id = "102";
  watch.request_of().state = RequestState::Accepted;
  CHECK(watch.look() == Texts{"queued a-0 j7-x job=7"});
  // What an older version kept does not say which one it was.
  watch.known.requests.begin()->second.id.clear();
  CHECK(watch.look().empty());
}

TEST_CASE("chronicle: another reason is told at once, other words now and then", "[sweeper]") {
  Watch watch;
  watch.asked(7, "a-0").last_attempt = attempt_error("STOCKOUT", "no room at 10:00");
  CHECK(watch.look().size() == 2);
  std::size_t told = 0;
  for (int round = 0; round < 60; ++round) {
    watch.request_of().last_attempt->message = "no room at round " + std::to_string(round);
    told += watch.look().size();
  }
  CHECK(told == 1);
  watch.request_of().last_attempt->code = "QUOTA_EXCEEDED";
  CHECK(watch.look().size() == 1);
}

TEST_CASE("chronicle: VMs of bulkInsert are their jobs'", "[sweeper]") {
  Watch watch;
  watch.waiting_job(7, "a-[0-1]");
  watch.waiting_job(8, "a-2");
  SweptGroup& loose = watch.owned("");
  loose.group.kind = GroupKind::Loose;
  watch.vms("a-[0-2]", "");
  for (Instance& vm : loose.instances)
    vm.description = ownership_mark("hpc", "a") + (vm.name.text == "a-2" ? " job=8" : " job=7");
  CHECK(watch.look() == Texts{"vm_up a-[0-1] job=7", "vm_up a-2 job=8"});
  loose.instances.clear();
  CHECK(watch.look() == Texts{"vm_gone a-[0-1] job=7 lost", "vm_gone a-2 job=8 lost"});
}

TEST_CASE("chronicle: how a VM went", "[sweeper]") {
  Watch watch;
  watch.running_job(7, "a-[0-3]");
  watch.vms("a-[0-3]");
  watch.end_at(watch.shot.now + Seconds{60});
  CHECK(watch.look() == Texts{"vm_up a-[0-3]", "registered a-[0-3]", "job_started a-[0-3] job=7"});
  auto& entries = watch.owned().instances;
  // One vanishes, one is deleted by us, one gets another VM.
  std::erase_if(entries, [](const Instance& one) { return one.name.text == "a-0"; });
  Event deleted;
  deleted.what = "delete_instances";
  deleted.group = "hpc-a";
  deleted.nodes = "a-1";
  deleted.more["result"] = "ok";
  learn(watch.known, deleted);
  watch.entry("a-1").action = InstanceAction::Deleting;
  watch.entry("a-2").id = "other";
  const Texts news = watch.look();
  CHECK(std::count(news.begin(), news.end(), "vm_gone a-1 deleted") == 1);
  CHECK(std::count(news.begin(), news.end(), "vm_gone a-[0,2] lost") == 1);
  CHECK(std::count(news.begin(), news.end(), "vm_up a-2") == 1);
  for (int i = 0; i < 4; ++i) watch.look();
  watch.no_vms();
  CHECK(watch.look() == Texts{"vm_gone a-[2-3] lease_end"});
}

TEST_CASE("chronicle: requeued, and ended before it began", "[sweeper]") {
  Watch watch;
  watch.running_job(7, "a-0");
  watch.waiting_job(8, "a-1");
  CHECK(watch.look() == Texts{"job_started a-0 job=7"});
  watch.shot.jobs.items[0].is_pending = true;
  watch.shot.jobs.items[0].is_running = false;
  watch.shot.jobs.items.pop_back();
  CHECK(watch.look() == Texts{"job_ended a-0 job=7 REQUEUED", "job_ended a-1 job=8  no"});
  watch.shot.jobs.items[0].is_pending = false;
  watch.shot.jobs.items[0].is_running = true;
  watch.shot.jobs.items[0].restart_count = 1;
  CHECK(watch.look() == Texts{"job_started a-0 job=7"});
  // Requeued and back between two looks.
  watch.shot.jobs.items[0].restart_count = 2;
  CHECK(watch.look() == Texts{"job_started a-0 job=7", "job_ended a-0 job=7 REQUEUED"});
}

TEST_CASE("chronicle: a job that ran between two looks", "[sweeper]") {
  Watch watch;
  watch.waiting_job(8, "a-1");
  CHECK(watch.look().empty());
  Job& job = watch.shot.jobs.items[0];
  job.is_configuring = job.is_running = false;
  job.is_finished = true;
  job.state = JOB_COMPLETE;
  CHECK(watch.look() == Texts{"job_started a-1 job=8", "job_ended a-1 job=8 COMPLETED"});
}

TEST_CASE("chronicle: requeued between two looks, to others' nodes", "[sweeper]") {
  Watch watch;
  watch.running_job(7, "a-0");
  CHECK(watch.look() == Texts{"job_started a-0 job=7"});
  watch.shot.jobs.items[0].restart_count = 1;
  watch.shot.jobs.items[0].nodes = {{"login-1"}};
  CHECK(watch.look() == Texts{"job_ended a-0 job=7 REQUEUED"});
  CHECK(watch.known.jobs.empty());
  CHECK(watch.look().empty());
}

TEST_CASE("chronicle: jobs on others' nodes are none of ours", "[sweeper]") {
  Watch watch;
  Job other = job(9, {{"login-1"}}, std::nullopt);
  other.is_configuring = false;
  watch.shot.jobs.items.push_back(other);
  CHECK(watch.look().empty());
  CHECK(watch.known.jobs.empty());
}

TEST_CASE("chronicle: what is too much for a round is told in the next ones", "[sweeper]") {
  Watch watch;
  for (JobId id = 1; id <= 8; ++id) watch.running_job(id, "a-" + std::to_string(id - 1));
  Texts all;
  std::size_t rounds = 0;
  for (; all.size() < 8 && rounds < 20; ++rounds) {
    const Texts some = watch.look(3);
    CHECK(some.size() <= 3);
    all.insert(all.end(), some.begin(), some.end());
  }
  CHECK(rounds == 3);
  CHECK(watch.look(3).empty());
  for (JobId id = 1; id <= 8; ++id) watch.end_job(id);
  CHECK(watch.look(3).size() == 3);
  CHECK(watch.look(3).size() == 3);
  CHECK(watch.look(3).size() == 2);
}

TEST_CASE("chronicle: nothing is written where nothing changes", "[sweeper]") {
  Watch watch;
  watch.running_job(7, "a-[0-3]");
  watch.vms("a-[0-3]");
  watch.look();
  const std::string text = to_text(watch.known);
  watch.known.is_changed = false;
  for (int round = 0; round < 100; ++round) CHECK(watch.look().empty());
  CHECK_FALSE(watch.known.is_changed);
  CHECK(to_text(watch.known) == text);
}

TEST_CASE("chronicle: a file of others is refused", "[sweeper]") {
  for (const char* text : {"", "{}", "[]", R"({"version":2})", R"({"version":1,"requests":[]})"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_chronicle(text));
  }
  Chronicle known;
  known.requests["g/r"].state = RequestState::Accepted;
  std::string text = to_text(known);
  CHECK(parse_chronicle(text));
  text.replace(text.find("\"state\":1"), 9, "\"state\":99");
  CHECK_FALSE(parse_chronicle(text));
}
