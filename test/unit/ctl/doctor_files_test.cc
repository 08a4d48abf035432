// SPDX-License-Identifier: GPL-2.0-or-later
// The doctor's checks of files: programs, the sweeper's directory, keys.
#include "test/unit/ctl/doctor_facts.h"

#include <cerrno>

namespace flex::doctor {
namespace {

TEST_CASE("doctor: programs", "[ctl]") {
  Facts facts = facts_of();
  FileFacts& resume = facts.slurm.programs["ResumeProgram"];
  SECTION("a link to ours is ours") {
    resume.path = "/opt/resume";
    resume.real_name = "flex-resume";
    CHECK(found(facts).empty());
  }
  SECTION("another's is told") {
    resume.path = resume.real_name = "/opt/resume.py";
    CHECK(found(facts) == "slurm.resume_program error");
  }
  SECTION("not executable") {
    resume.mode = 0644;
    CHECK(found(facts) == "slurm.resume_program error");
  }
  SECTION("slurmctld refuses what others may write") {
    resume.mode = 0775;
    CHECK(found(facts) == "slurm.resume_program error");
  }
}

TEST_CASE("doctor: the sweeper", "[ctl]") {
  using namespace std::chrono_literals;
  Facts facts = facts_of();
  facts.now = TimePoint{1000000s};
  facts.state = {.was_looked_at = true,
                 .directory = {.path = "/s/flex-start", .exists = true, .is_directory = true}};
  const auto [beat, since, what] = GENERATE(table<int, int, std::string>({
      {-1, -1, "sweeper.not_running warning"},
      {20, -1, ""},
      {20, 3600, ""},
      {3600, -1, "sweeper.not_running error"},
      {3600, 10, "sweeper.starting info"},
      {-1, 10, "sweeper.starting info"},
      {-1, 3600, "sweeper.not_running error"},
  }));
  if (beat >= 0) facts.state.heartbeat = facts.now - Seconds{beat};
  if (since >= 0) facts.state.at_work_since = facts.now - Seconds{since};
  INFO(beat << " " << since);
  CHECK(found(facts, true) == what);
}

/// As if the sweeper were at work, but for its directory.
Facts facts_with_state(FileFacts directory, FileFacts parent) {
  Facts facts = facts_of();
  facts.now = TimePoint{Seconds{1000000}};
  facts.slurm.slurm_user = 64030;
  facts.slurm.slurm_user_name = "slurm";
  facts.slurm.slurm_user_groups = {64030};
  facts.state = {.was_looked_at = true,
                 .directory = std::move(directory),
                 .parent = std::move(parent),
                 .heartbeat = facts.now};
  return facts;
}

TEST_CASE("doctor: a state directory that is not there", "[ctl]") {
  const FileFacts missing{.path = "/var/lib/flex", .error = ENOENT};
  FileFacts parent{.path = "/var/lib", .exists = true, .is_directory = true, .mode = 0755};
  SECTION("SlurmUser cannot make it: the line to write does not touch the one above it") {
    const Findings findings = check_all(facts_with_state(missing, parent));
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].id == "state.directory");
    CHECK(findings[0].hints ==
          std::vector<std::string>{"install -d -o slurm -m 0750 /var/lib/flex"});
  }
  SECTION("SlurmUser can make it") {
    parent.owner = 64030;
    CHECK(found(facts_with_state(missing, parent)).empty());
    parent.owner = 0;
    parent.group = 64030;
    parent.mode = 0775;
    CHECK(found(facts_with_state(missing, parent)).empty());
    parent.group = 0;
    parent.mode = 01777;
    CHECK(found(facts_with_state(missing, parent)).empty());
  }
  SECTION("nor is the one above it") {
    CHECK(found(facts_with_state(missing, {.path = "/var/lib/x", .error = ENOENT})) ==
          "state.directory error");
  }
  SECTION("it cannot be seen: nothing is known of it, nor of the sweeper") {
    const FileFacts hidden{.path = "/var/lib/flex", .error = EACCES};
    Facts facts = facts_with_state(hidden, parent);
    facts.state.heartbeat.reset();
    CHECK(found(facts, true) == "sweeper.unseen info");
  }
}

}  // namespace
}  // namespace flex::doctor
