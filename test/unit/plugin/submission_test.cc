// SPDX-License-Identifier: GPL-2.0-or-later
// The plugin's callbacks as sbatch, salloc and srun call them.
#include "plugin/spank_api.h"
#include "test/support/catch.h"
#include "test/unit/plugin/fake_spank.h"

#include <cstdlib>

using namespace flex::test;

namespace {

/// sbatch with the plugin in it.
FakeSpank& sbatch(std::vector<std::string> words = {}) {
  FakeSpank& spank = new_spank(S_CTX_ALLOCATOR);
  spank.words = std::move(words);
  REQUIRE(spank.call(slurm_spank_init) == 0);
  return spank;
}

}  // namespace

TEST_CASE("init: the options, with the site's limits", "[plugin]") {
  FakeSpank& spank = sbatch({"max_run=2d", "max_wait=12h"});
  REQUIRE(spank.options.size() == 3);
  CHECK(spank.options[0].name == "flex-run-duration");
  CHECK_THAT(spank.options[0].usage, EndsWith("(10m to 2d)"));
  CHECK(spank.options[1].name == "flex-max-wait");
  CHECK_THAT(spank.options[1].usage, EndsWith("(up to 12h)"));
  CHECK(spank.options[2].name == "flex-on-timeout");
  CHECK(spank.options[2].argument == "requeue|hold|cancel");
}

TEST_CASE("options: what was asked for is in the comment", "[plugin]") {
  FakeSpank& spank = sbatch();
  spank.typed["comment"] = "my run";
  CHECK(spank.type("flex-run-duration", "4:00:00") == 0);
  CHECK(spank.type("flex-max-wait", "30") == 0);
  CHECK(spank.type("flex-on-timeout", "hold") == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed["comment"] == "my run flex(run=4h,wait=30m,ontimeout=hold)");
  CHECK(spank.errors.empty());
  CHECK(spank.infos.empty());
}

TEST_CASE("options: without them the comment stays as it is", "[plugin]") {
  FakeSpank& spank = sbatch();
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed.empty());
  spank.typed["comment"] = "flex(run=2h)";
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed["comment"] == "flex(run=2h)");
  CHECK(spank.infos.empty());
}

TEST_CASE("options: a bad value is refused in one sentence", "[plugin]") {
  FakeSpank& spank = sbatch({"max_run=2d"});
  CHECK(spank.type("flex-run-duration", "3d") != 0);
  CHECK(spank.errors ==
        std::vector<std::string>{
            "flex-start: --flex-run-duration=3d: too long, VMs live from 10m to 2d"});
  spank.errors.clear();
  CHECK(spank.type("flex-on-timeout", "") != 0);
  CHECK(spank.errors ==
        std::vector<std::string>{"flex-start: --flex-on-timeout=: write requeue, hold or cancel"});
}

TEST_CASE("options: a later component begins with what the one before it said", "[plugin]") {
  FakeSpank& spank = sbatch();
  REQUIRE(spank.type("flex-run-duration", "4h") == 0);
  REQUIRE(spank.type("flex-max-wait", "1h") == 0);
  REQUIRE(spank.call(slurm_spank_init_post_opt) == 0);
  spank.typed["comment"] = "the other";
  REQUIRE(spank.type("flex-run-duration", "2h") == 0);
  REQUIRE(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed["comment"] == "the other flex(run=2h,wait=1h)");
}

TEST_CASE("options: a step of a job has no wish of its own, and is told", "[plugin]") {
  FakeSpank& spank = new_spank(S_CTX_LOCAL);
  REQUIRE(spank.call(slurm_spank_init) == 0);
  spank.typed["jobid"] = "42";
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.infos.empty());
  REQUIRE(spank.type("flex-run-duration", "4h") == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed.count("comment") == 0);
  CHECK(spank.infos ==
        std::vector<std::string>{
            "flex-start: the --flex options are for new jobs, not for a step of job 42"});
}

TEST_CASE("options: srun that makes a job is as sbatch", "[plugin]") {
  FakeSpank& spank = new_spank(S_CTX_LOCAL);
  REQUIRE(spank.call(slurm_spank_init) == 0);
  spank.typed["jobid"] = "unset";
  REQUIRE(spank.type("flex-run-duration", "4h") == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed["comment"] == "flex(run=4h)");
}

TEST_CASE("options: a mistake in a comment typed by hand is told, not refused", "[plugin]") {
  FakeSpank& spank = sbatch();
  spank.typed["comment"] = "flex(run=8d,wait=1h)";
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.typed["comment"] == "flex(run=8d,wait=1h)");
  CHECK(spank.infos ==
        std::vector<std::string>{
            "flex-start: comment: run=8d: too long, VMs live from 10m to 7d; ignored"});
}

TEST_CASE("options: not for what the job submits", "[plugin]") {
  const char* name = "_SLURM_SPANK_OPTION_flex_start_flex_run_duration";
  FakeSpank& spank = sbatch();
  REQUIRE(spank.type("flex-run-duration", "4h") == 0);
  ::setenv(name, "4h", 1);
  REQUIRE(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(::getenv(name) == nullptr);
  CHECK(spank.unset_for_job.size() == 3);
  CHECK(spank.unset_for_job[0] == name);
}

TEST_CASE("a new job has nothing of the VMs of the job that submits it, a step has", "[plugin]") {
  ::setenv("SLURM_FLEX_END_TIME", "1800000000", 1);
  FakeSpank& step = new_spank(S_CTX_LOCAL);
  REQUIRE(step.call(slurm_spank_init) == 0);
  step.typed["jobid"] = "12";
  REQUIRE(step.call(slurm_spank_init_post_opt) == 0);
  CHECK(::getenv("SLURM_FLEX_END_TIME") != nullptr);
  REQUIRE(sbatch().call(slurm_spank_init_post_opt) == 0);
  CHECK(::getenv("SLURM_FLEX_END_TIME") == nullptr);
}

TEST_CASE("options: a comment that gets too long for slurmctld is explained", "[plugin]") {
  FakeSpank& spank = sbatch();
  spank.typed["comment"] = std::string(1020, 'x');
  REQUIRE(spank.type("flex-max-wait", "30m") == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.errors ==
        std::vector<std::string>{
            "flex-start: --comment is too long: with the --flex options it may have "
            "1009 bytes"});
}

TEST_CASE("options: a program that does not take the comment refuses the job", "[plugin]") {
  FakeSpank& spank = sbatch();
  spank.takes_comment = false;
  REQUIRE(spank.type("flex-run-duration", "4h") == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) < 0);
  REQUIRE(spank.errors.size() == 1);
  CHECK_THAT(spank.errors[0], ContainsSubstring("--comment='flex(run=4h)'"));
}

TEST_CASE("init: wrong arguments fail where an admin or a user sees it", "[plugin]") {
  const auto context = GENERATE(S_CTX_ALLOCATOR, S_CTX_LOCAL, S_CTX_SLURMD);
  FakeSpank& spank = new_spank(context);
  spank.words = {"max_run=4h", "typo=1"};
  CHECK(spank.call(slurm_spank_init) < 0);
  CHECK(spank.options.empty());
  CHECK(spank.errors ==
        std::vector<std::string>{"flex-start: plugstack.conf: typo: not known; there are max_run=, "
                                 "max_wait=, cache_dir= and lease="});
}

TEST_CASE("init: slurmd takes no options", "[plugin]") {
  FakeSpank& spank = new_spank(S_CTX_SLURMD);
  spank.words = {"max_run=4h"};
  CHECK(spank.call(slurm_spank_init) == 0);
  CHECK(spank.options.empty());
}
