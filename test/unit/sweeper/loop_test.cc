// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/loop.h"

#include "lib/fleet/node_extra.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"
#include "test/support/scene.h"

#include <nlohmann/json.hpp>
#include <slurm/slurm.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <sstream>

using namespace flex;
using namespace flex::test;

namespace {

/// A loop over fakes that the test keeps its hands on, with a state directory.
struct Life {
  FakeCloud* cloud = nullptr;
  FakeScheduler* slurm = nullptr;
  std::vector<std::string> lines{};
  std::function<void(std::string_view)> on_line = [](std::string_view) {};
  Log log{[this](LogLevel, std::string_view line) {
            lines.emplace_back(line);
            on_line(line);
          },
          LogLevel::Debug};
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("flex-loop-" + std::to_string(::getpid()));

  Life() {
    std::filesystem::remove_all(dir);
    std::filesystem::create_directory(dir);
  }

  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  ~Life() { std::filesystem::remove_all(dir); }

  Loop loop(LoopOptions options = {}) {
    options.state_dir = dir.string();
    LoopParts parts;
    parts.config = config({nodeset("a", nodes("a", 2))});
    parts.config.sweeper.orphan_grace = Seconds{0};
    parts.cluster = "hpc";
    auto fake_cloud = std::make_unique<FakeCloud>();
    auto fake_slurm = std::make_unique<FakeScheduler>();
    cloud = fake_cloud.get();
    slurm = fake_slurm.get();
    slurm->controller.is_here = true;
    slurm->add_node("a-0");
    slurm->add_node("a-1");
    parts.scheduler = std::move(fake_slurm);
    parts.cloud = std::move(fake_cloud);
    parts.reload = [] { return Result<Reloaded>{Error{ErrorKind::Invalid, "no"}}; };
    return {std::move(parts), std::move(options), log};
  }

  [[nodiscard]] nlohmann::json status() const {
    std::ifstream in(dir / "status.json");
    return nlohmann::json::parse(in);
  }
};

}  // namespace

TEST_CASE("loop: memory survives, so that two single rounds are two sightings") {
  Life life;
  for (int i = 0; i < 2; ++i) {
    Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
    life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
    life.cloud->add_instance("hpc-a", "a-0");
    CHECK(loop.run() == 0);
    CHECK(life.cloud->count("delete_instances") == static_cast<std::size_t>(i));
  }
}

TEST_CASE("loop: who dies while a drain is forgotten does not remember it") {
  Life life;
  const auto remembered = [&] {
    std::ifstream in(life.dir / "memory.json");
    return nlohmann::json::parse(in)["drains"].size();
  };
  {
    Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
    Node& node = life.slurm->nodes.at(0);
    node.state |= static_cast<std::uint32_t>(NODE_STATE_DRAIN);
    node.reason = "fan";
    CHECK(loop.run() == 0);
    CHECK(remembered() == 1);
  }
  std::optional<std::size_t> meanwhile;
  life.on_line = [&](std::string_view line) {
    if (line.find("forget_drain") != std::string_view::npos) meanwhile = remembered();
  };
  Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
  life.slurm->nodes.at(0).extra = with_drain_note({}, "fan");
  CHECK(loop.run() == 0);
  CHECK(meanwhile == 0);
  CHECK(remembered() == 0);
}

TEST_CASE("loop: what it does and what it sees is in the history, once") {
  Life life;
  for (int i = 0; i < 3; ++i) {
    Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
    life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
    if (i == 1) life.cloud->next_error("delete_instances", {ErrorKind::Denied, "no", ""});
    life.cloud->add_instance("hpc-a", "a-0");
    (void)loop.run();
  }
  std::vector<Event> events;
  HistoryMark mark;
  REQUIRE(read_history(
      life.dir.string(), mark, [&](Event event) { events.push_back(std::move(event)); }));
  // The first look is only remembered, the others see no change.
  REQUIRE(events.size() == 2);
  CHECK(events[0].what == "delete_instances");
  CHECK(events[0].program == "flex-sweeper");
  CHECK(events[0].rule == "orphan_instance");
  CHECK(events[0].why == "its node is powered down");
  CHECK(events[0].nodes == "a-0");
  CHECK(events[0].group == "hpc-a");
  CHECK(events[0].more.at("result") == "failed");
  CHECK(events[0].more.at("error") == "no");
  CHECK(events[1].more.at("result") == "ok");
  CHECK(events[1].when != TimePoint{});
  CHECK(std::filesystem::exists(life.dir / "chronicle.json"));
}

TEST_CASE("loop: status.json says what became of an action") {
  Life life;
  for (int i = 0; i < 3; ++i) {
    Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
    life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
    if (i == 1) life.cloud->next_error("delete_instances", {ErrorKind::Denied, "no", ""});
    life.cloud->add_instance("hpc-a", "a-0");
    (void)loop.run();
    const nlohmann::json actions = life.status()["actions"];
    if (i == 0) CHECK(actions.empty());
    if (i == 1) CHECK(actions[0]["result"] == "failed");
    if (i == 1) CHECK(actions[0]["error"] == "no");
    if (i == 2) CHECK(actions[0]["result"] == "done");
  }
}

TEST_CASE("loop: a dry run writes no history") {
  Life life;
  Loop loop = life.loop({.is_dry_run = true, .rounds = 1, .interval = {}, .state_dir = {}});
  CHECK(loop.run() == 0);
  CHECK_FALSE(std::filesystem::exists(life.dir / "history.jsonl"));
  CHECK_FALSE(std::filesystem::exists(life.dir / "chronicle.json"));
}

TEST_CASE("loop: a round without a complete view decides nothing and fails") {
  Life life;
  Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
  life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
  life.cloud->next_error("fetch_instances", {ErrorKind::Retry, "away"});
  CHECK(loop.run() == 1);
  CHECK(life.status()["last_round"]["complete"] == false);
  CHECK(life.status()["why"].get<std::string>().find("away") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(life.dir / "heartbeat"));
}

TEST_CASE("loop: so does one that slurmctld does not answer") {
  Life life;
  Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
  life.slurm->fail_next("refresh_jobs", {ErrorKind::Retry, "away"});
  CHECK(loop.run() == 1);
}

TEST_CASE("loop: where slurmctld is not in charge nothing is looked at") {
  Life life;
  Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
  life.slurm->controller = {.is_here = false, .host = "other"};
  CHECK(loop.run() == 0);
  CHECK(life.cloud->calls.empty());
  // The other host's sweeper writes there.
  CHECK(std::filesystem::is_empty(life.dir));
}

TEST_CASE("loop: status.json says who, what and how it went") {
  Life life;
  Loop loop = life.loop({.is_dry_run = false, .rounds = 1, .interval = {}, .state_dir = {}});
  life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
  life.cloud->add_request("hpc-a", "j7-x", {"a-0"});
  CHECK(loop.run() == 0);
  const nlohmann::json status = life.status();
  CHECK(status["cluster"] == "hpc");
  CHECK(status["round"] == 1);
  CHECK(status["nodesets"][0]["states"]["powered_down"] == 2);
  CHECK(status["requests"][0]["name"] == "j7-x");
  CHECK(status["last_round"]["complete"] == true);
  CHECK(std::filesystem::exists(life.dir / "heartbeat"));
}

TEST_CASE("loop: status.json says how often it really looks") {
  Life life;
  Loop loop =
      life.loop({.is_dry_run = false, .rounds = 1, .interval = Seconds{7}, .state_dir = {}});
  CHECK(loop.run() == 0);
  CHECK(life.status()["interval_seconds"] == 7);
}

TEST_CASE("loop: a dry run does nothing and keeps nothing") {
  Life life;
  Loop loop = life.loop({.is_dry_run = true, .rounds = 2, .interval = Seconds{0}, .state_dir = {}});
  life.cloud->add_group("hpc-a", ownership_mark("hpc", "a"));
  life.cloud->add_instance("hpc-a", "a-0");
  std::ostringstream out;
  auto* const old = std::cout.rdbuf(out.rdbuf());
  CHECK(loop.run() == 0);
  std::cout.rdbuf(old);
  CHECK(out.str().find("would: event=action rule=orphan_instance what=delete_instances") == 0);
  CHECK(life.cloud->count("delete_instances") == 0);
  CHECK(std::filesystem::is_empty(life.dir));
}

TEST_CASE("loop: pauses grow with failures, up to a bound") {
  using std::chrono::milliseconds;
  CHECK(round_pause(milliseconds{15000}, 0) == milliseconds{15000});
  CHECK(round_pause(milliseconds{15000}, 1) == milliseconds{30000});
  CHECK(round_pause(milliseconds{15000}, 3) == milliseconds{120000});
  CHECK(round_pause(milliseconds{15000}, 90) == milliseconds{120000});
}

TEST_CASE("loop: the lock goes with the charge, and comes back with it") {
  Life life;
  Loop first = life.loop();
  FakeScheduler* const slurm = life.slurm;
  REQUIRE(first.lock());
  Loop second = life.loop();
  CHECK_FALSE(second.lock());
  slurm->controller = {.is_here = false, .host = "other"};
  first.round();
  CHECK(second.lock());
}
