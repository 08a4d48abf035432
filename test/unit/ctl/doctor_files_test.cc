// SPDX-License-Identifier: GPL-2.0-or-later
// The doctor's checks of files: programs, the sweeper's directory, keys.
#include "ctl/doctor/gather.h"
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
    CHECK(check_all(facts).front().hints ==
          std::vector<std::string>{"chmod 0755 /usr/sbin/flex-resume"});
  }
  SECTION("not for SlurmUser") {
    const auto [mode, group, what] = GENERATE(table<mode_t, gid_t, std::string>({
        {0755, 0, ""},
        {0750, 0, "slurm.resume_program error"},
        {0750, 64030, ""},
        {0711, 0, "slurm.resume_program error"},
        {0700, 64030, "slurm.resume_program error"},
    }));
    facts.slurm.slurm_user = 64030;
    facts.slurm.slurm_user_name = "slurm";
    facts.slurm.slurm_user_groups = {64030};
    resume.mode = mode;
    resume.group = group;
    CHECK(found(facts) == what);
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

TEST_CASE("doctor: a flex-start.yaml that SlurmUser cannot read", "[ctl]") {
  const FileFacts directory{
      .path = "/s/flex-start", .exists = true, .is_directory = true, .owner = 64030, .mode = 0750};
  Facts facts = facts_with_state(directory, {});
  facts.yaml.on_disk = {
      .path = "/etc/slurm/flex-start.yaml", .exists = true, .is_file = true, .mode = 0644};
  facts.state.heartbeat.reset();
  CHECK(found(facts) == "sweeper.not_running warning");
  facts.yaml.on_disk.mode = 0600;
  const Findings findings = check_all(facts);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].id == "config.owner");
  CHECK(findings[0].hints == std::vector<std::string>{"chown slurm /etc/slurm/flex-start.yaml"});
  facts.yaml.on_disk.owner = 64030;
  CHECK(found(facts) == "sweeper.not_running warning");
}

TEST_CASE("doctor: a plugstack.conf that not everybody can read", "[ctl]") {
  Facts facts = facts_of();
  facts.slurm.plugin.on_disk = {.path = "plugstack.conf", .exists = true, .mode = 0644};
  CHECK(found(facts).empty());
  facts.slurm.plugin.on_disk.mode = 0640;
  CHECK(found(facts) == "slurm.plugstack_mode error");
  facts.slurm.plugin.has_file = false;
  facts.slurm.plugin.line = 0;
  CHECK(found(facts, true) == "slurm.plugstack_mode error");
}

TEST_CASE("doctor: another SlurmUser than the unit's", "[ctl]") {
  const FileFacts directory{
      .path = "/s/flex-start", .exists = true, .is_directory = true, .owner = 64030, .mode = 0750};
  Facts facts = facts_with_state(directory, {});
  facts.state.heartbeat.reset();
  const std::vector<std::string> start{"systemctl enable --now flex-sweeper",
                                       "journalctl -u flex-sweeper"};
  CHECK(check_all(facts).front().hints == start);
  facts.slurm.slurm_user_name = "hpc";
  std::vector<std::string> edit{"systemctl edit flex-sweeper", "[Service]", "User=hpc"};
  edit.insert(edit.end(), start.begin(), start.end());
  CHECK(check_all(facts).front().hints == edit);
}

TEST_CASE("doctor: what only the sweeper's unit sets", "[ctl]") {
  Facts facts = facts_of();
  facts.slurm.file = "/etc/slurm/slurm.conf";
  const auto [key, value, what] = GENERATE(table<std::string, std::string, std::string>({
      {"SLURM_CONF", "/opt/slurm.conf", ""},
      {"FLEX_START_CONFIG", "", ""},
      {"FLEX_START_CONFIG", "/etc/slurm/flex-start.yaml", ""},
      {"FLEX_START_CONFIG", "/opt/flex.yaml", "sweeper.environment warning"},
      {"GOOGLE_APPLICATION_CREDENTIALS", "/opt/key.json", "sweeper.environment warning"},
  }));
  facts.unit_environment[key] = value;
  INFO(key << "=" << value);
  CHECK(found(facts) == what);
  facts.yaml.loaded.config.credentials = "/opt/key.json";
  if (key == "GOOGLE_APPLICATION_CREDENTIALS") CHECK(found(facts).empty());
}

TEST_CASE("doctor: an environment file as systemd reads it", "[ctl]") {
  const auto values = parse_environment(
      "# FLEX_START_CONFIG=/no\n; X=1\n\nA=1\n B=\"two words\" \nC='x'\nD=\nnonsense\nA=2");
  CHECK(values ==
        std::map<std::string, std::string>{{"A", "2"}, {"B", "two words"}, {"C", "x"}, {"D", ""}});
  CHECK(parse_environment("").empty());
}

}  // namespace
}  // namespace flex::doctor
