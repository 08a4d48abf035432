// SPDX-License-Identifier: GPL-2.0-or-later
// In a program that gives no access to its options: a release of Slurm that is to come, perhaps.
#include "plugin/spank_api.h"
#include "test/support/catch.h"
#include "test/unit/plugin/fake_spank.h"

using namespace flex::test;

TEST_CASE("options: refused with another way to say it", "[plugin]") {
  FakeSpank& spank = new_spank(S_CTX_ALLOCATOR);
  REQUIRE(spank.call(slurm_spank_init) == 0);
  CHECK(spank.type("flex-run-duration", "4h") != 0);
  CHECK(spank.errors ==
        std::vector<std::string>{
            "flex-start: this program does not let a plugin set a job's comment; write "
            "--comment='flex(run=4h,wait=30m,ontimeout=hold)' instead of the --flex options"});
}

TEST_CASE("options: who uses none is not bothered", "[plugin]") {
  FakeSpank& spank = new_spank(S_CTX_LOCAL);
  REQUIRE(spank.call(slurm_spank_init) == 0);
  CHECK(spank.call(slurm_spank_init_post_opt) == 0);
  CHECK(spank.errors.empty());
}
