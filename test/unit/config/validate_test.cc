// SPDX-License-Identifier: GPL-2.0-or-later
// What goes together: the twins of the files under test/data/config/bad.
#include "lib/config/validate.h"

#include "test/support/catch.h"
#include "test/unit/config/support.h"

using namespace flex;
using namespace flex::test;

namespace {

std::string nodesets(const std::string& lines) {
  return "region: us-central1\ndefaults: {instance_template: t}\nnodesets:\n" + lines;
}

}  // namespace

TEST_CASE("placement: gives a job its own group and a warning with its place", "[config]") {
  const auto loaded = parse_config(minimal("    placement: {max_distance: 2}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Job);
  CHECK(loaded.config.warnings ==
        std::vector<std::string>{"f:6:31: placement is not applied by this version"});
}

TEST_CASE("placement: overrides a mig_scope of nodeset and says so", "[config]") {
  const auto loaded =
      parse_config(minimal("    mig_scope: nodeset\n    placement: {max_distance: 1}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Job);
  REQUIRE(loaded.config.warnings.size() == 2);
  CHECK(loaded.config.warnings[1] ==
        "f:6:16: mig_scope nodeset is taken as job, because of placement");
}

TEST_CASE("placement: an empty one changes nothing", "[config]") {
  const auto loaded = parse_config(minimal("    placement: {}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Nodeset);
  CHECK(loaded.config.warnings.empty());
}

TEST_CASE("group names: leaves nodesets alone whose groups differ", "[config]") {
  const auto lines = GENERATE(as<std::string>{},
                              "  a: {nodes: 'a-[1-2000]'}\n  a-2: {nodes: b-1}\n",
                              "  a: {nodes: 'a-[1-2001]'}\n  a-3: {nodes: b-1}\n",
                              "  a-j12: {nodes: b-1}\n  b: {nodes: a-1}\n",
                              "  a: {nodes: a-1}\n  a-job12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  aj12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j12-b: {nodes: b-1}\n");
  CHECK(problems_of(nodesets(lines)) == std::vector<std::string>{});
}

TEST_CASE("group names: refuses nodesets that would share a group", "[config]") {
  const auto lines = GENERATE(as<std::string>{},
                              "  a: {nodes: 'a-[1-4001]'}\n  a-3: {nodes: b-1}\n",
                              "  a-2: {nodes: b-1}\n  a: {nodes: 'a-[1-2001]'}\n",
                              "  a: {nodes: a-1}\n  a-j12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j12-2: {nodes: b-1}\n",
                              "  a-b: {nodes: a-1}\n  a-b-j0: {nodes: b-1}\n");
  const auto seen = problems_of(nodesets(lines));
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], ContainsSubstring("would both have a group"));
}

TEST_CASE("region: comes from the zones where every nodeset has some", "[config]") {
  const auto loaded = parse_config(
      "nodesets:\n  a: {nodes: a-1, instance_template: t, zones: [europe-west4-b]}\n"
      "  b: {nodes: b-1, instance_template: t, zones: [europe-west4-a]}\n",
      "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.region == "europe-west4");
}

TEST_CASE("region: is needed as soon as one nodeset has no zones", "[config]") {
  const auto seen = problems_of(
      "nodesets:\n  a: {nodes: a-1, instance_template: t, zones: [europe-west4-b]}\n"
      "  b: {nodes: b-1, instance_template: t}\n");
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], StartsWith("3:3: nodeset 'b' has no zones"));
}

TEST_CASE("static nodes: may be all of the nodeset's", "[config]") {
  const auto loaded = parse_config(minimal("    static_nodes: a-[0-3]\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].static_nodes.size() == 4);
}
