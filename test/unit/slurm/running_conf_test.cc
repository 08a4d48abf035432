// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/running_conf.h"

#include "lib/slurm/release.h"
#include "test/support/catch.h"

namespace flex {
namespace {

TEST_CASE("running_conf: the library's version is a release of Slurm", "[slurm]") {
  const auto release = parse_slurm_release(slurm_library_version());
  REQUIRE(release);
  CHECK(*release == library_release());
}

}  // namespace
}  // namespace flex
