// SPDX-License-Identifier: GPL-2.0-or-later
// How a plan is told.
#include "ctl/plan_text.h"
#include "resume/admit.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using namespace flex;
using namespace flex::test;

namespace {

PlanStory story_of(const Config& settings, JobId id, Seconds limit) {
  PlanStory story{.config = settings};
  story.demand.jobs.push_back({.job = job(id, nodes("a", 2), limit), .nodes = nodes("a", 2)});
  FleetView fleet;
  fleet[0] = {};
  story.plan = plan_resume(settings, "hpc", story.demand, fleet);
  return story;
}

std::string text_of(const PlanStory& story) {
  return fmt::format("{}", fmt::join(plan_lines(story), "\n"));
}

}  // namespace

TEST_CASE("plan: says group, request, nodes, run duration and how it was computed", "[ctl]") {
  const Config settings = config({nodeset("a", nodes("a", 4))});
  const PlanStory story = story_of(settings, 12, std::chrono::hours{4});
  const std::string text = text_of(story);
  CHECK_THAT(text, ContainsSubstring("group hpc-a (queued): would be created"));
  CHECK_THAT(text, ContainsSubstring("for job 12: a-[0-1] (2 VMs, all or nothing)"));
  CHECK_THAT(text, ContainsSubstring("run duration 04:15:00 (TimeLimit"));
  CHECK_FALSE(has_refusals(story));
  const auto json = nlohmann::json::parse(plan_json(story));
  CHECK(json["groups"][0]["requests"][0]["run_seconds"] == 15300);
  CHECK(json["groups"][0]["exists"] == false);
}

TEST_CASE("plan: says whether all or nothing is asked for", "[ctl]") {
  Config settings = config({nodeset("a", nodes("a", 4))});
  const auto least = [](const PlanStory& story) {
    return nlohmann::json::parse(plan_json(story))["groups"][0]["requests"][0]["min_n"];
  };
  CHECK(least(story_of(settings, 12, std::chrono::hours{4})) == 2);
  settings.nodesets[0].mode = Mode::Individual;
  const PlanStory trickle = story_of(settings, 12, std::chrono::hours{4});
  CHECK_THAT(text_of(trickle), ContainsSubstring("a-[0-1] (2 VMs, one by one)"));
  CHECK(least(trickle) == 1);
  settings.nodesets[0].mode = Mode::BulkInsert;
  const PlanStory bulk = story_of(settings, 12, std::chrono::hours{4});
  CHECK_THAT(text_of(bulk), ContainsSubstring("a-[0-1] (2 VMs, all or nothing)"));
  PlanStory jobless{.config = settings};
  jobless.demand.jobless = nodes("a", 3);
  FleetView fleet;
  fleet[0] = {};
  jobless.plan = plan_resume(settings, "hpc", jobless.demand, fleet);
  CHECK_THAT(text_of(jobless), ContainsSubstring("a-[0-2] (3 VMs, or as many as there are)"));
  CHECK(least(jobless) == 1);
}

TEST_CASE("plan: a job that is made up has no number", "[ctl]") {
  Config settings = config({nodeset("a", nodes("a", 4))});
  settings.nodesets[0].mig_scope = MigScope::Job;
  const std::string text = text_of(story_of(settings, kMadeUpJob, std::chrono::hours{4}));
  CHECK_THAT(text, ContainsSubstring("group hpc-a-jJOB (queued)"));
  CHECK_THAT(text, ContainsSubstring("request jJOB-… for such a job"));
  CHECK(text.find("42949") == std::string::npos);
}

TEST_CASE("plan: tells what is refused, left alone and capped", "[ctl]") {
  Config settings = config({nodeset("a", nodes("a", 4))});
  settings.nodesets[0].max_nodes = 1;
  PlanStory story = story_of(settings, 12, std::chrono::hours{4});
  keep_to_max_nodes(
      settings, story.demand, {{0, {.name = "a", .max_nodes = 1}}}, TimePoint{}, story.plan);
  story.demand.foreign = {{"x-1"}};
  story.notes = {"3 wait"};
  const std::string text = text_of(story);
  CHECK(has_refusals(story));
  CHECK_THAT(text, ContainsSubstring("nothing would be asked for"));
  CHECK_THAT(text, ContainsSubstring("refused: a-[0-1] for job 12: 2 nodes are wanted"));
  CHECK_THAT(text, ContainsSubstring("left alone: x-1 (in no nodeset"));
  CHECK_THAT(text, ContainsSubstring("note: 3 wait"));
  settings.nodesets[0].max_nodes = 0;
  CHECK_THAT(text_of(story_of(settings, 12, std::chrono::hours{24 * 8})),
             ContainsSubstring("job 12 is told: "));
}
