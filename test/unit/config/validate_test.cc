// SPDX-License-Identifier: GPL-2.0-or-later
// What goes together: the twins of the files under test/data/config/bad.
#include "lib/config/validate.h"

#include "test/support/catch.h"
#include "test/unit/config/support.h"

#include <algorithm>
#include <cctype>
#include <csignal>

using namespace flex;
using namespace flex::test;

namespace {

std::string nodesets(const std::string& lines) {
  return "region: us-central1\ndefaults: {instance_template: t}\nnodesets:\n" + lines;
}

}  // namespace

TEST_CASE("placement: gives a job its own group", "[config]") {
  const auto placement =
      GENERATE(as<std::string>{}, "max_distance: 2", "accelerator_topology: 4x4");
  const auto loaded = parse_config(minimal("    placement: {" + placement + "}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Job);
  CHECK(loaded.config.nodesets[0].placement.is_wanted());
  CHECK(loaded.config.warnings.empty());
}

TEST_CASE("placement: the machine types that Flex Start places, and no other", "[config]") {
  const auto [type, is_good] = GENERATE(table<std::string, bool>({
      {"a3-ultragpu-8g", true},
      {"a4-highgpu-8g", true},
      {"h4d-standard-192", true},
      {"a3-megagpu-8g", false},
      {"a4x-highgpu-4g", false},
      {"h4-standard-8", false},
  }));
  INFO(type);
  const std::string machine = "    machine_type: " + type + "\n";
  CHECK(problems_of(minimal(machine)).empty());
  CHECK(problems_of(minimal(machine + "    placement: {max_distance: 1}\n")).empty() == is_good);
}

TEST_CASE("placement: a nodeset's own sort takes the place of the defaults'", "[config]") {
  const auto loaded = parse_config(
      "defaults: {instance_template: t, placement: {max_distance: 2}}\nregion: us-central1\n"
      "nodesets:\n  a: {nodes: a-1}\n"
      "  b: {nodes: b-1, placement: {accelerator_topology: 2x2x4}}\n",
      "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].placement.max_distance == 2);
  CHECK(loaded.config.nodesets[1].placement.max_distance == 0);
  CHECK(loaded.config.nodesets[1].placement.accelerator_topology == "2x2x4");
}

TEST_CASE("placement: overrides a mig_scope of nodeset and says so", "[config]") {
  const auto loaded =
      parse_config(minimal("    mig_scope: nodeset\n    placement: {max_distance: 1}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Job);
  CHECK(loaded.config.warnings ==
        std::vector<std::string>{"f:6:16: mig_scope nodeset is taken as job, because of "
                                 "placement"});
}

TEST_CASE("placement: an empty one changes nothing", "[config]") {
  const auto loaded = parse_config(minimal("    placement: {}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mig_scope == MigScope::Nodeset);
  CHECK(loaded.config.warnings.empty());
}

TEST_CASE("mode: use_bulk_insert is another spelling of bulk_insert", "[config]") {
  const auto line = GENERATE(as<std::string>{},
                             "    mode: bulk_insert\n",
                             "    dws_flex: {use_bulk_insert: true}\n",
                             "    mode: bulk_insert\n    dws_flex: {use_bulk_insert: true}\n");
  const auto loaded = parse_config(minimal(line), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mode == Mode::BulkInsert);
  CHECK(loaded.config.nodesets[0].dws_flex.use_bulk_insert);
}

TEST_CASE("mode: use_bulk_insert false says nothing about the other modes", "[config]") {
  const auto loaded =
      parse_config(minimal("    mode: individual\n    dws_flex: {use_bulk_insert: false}\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].mode == Mode::Individual);
}

TEST_CASE("mode: only what is always made by bulk_insert may live for less than 10 minutes",
          "[config]") {
  const auto [lines, is_good] = GENERATE(table<std::string, bool>({
      {"    mode: bulk_insert\n", true},
      {"    mode: bulk_insert\n    on_stockout: [{wait: 1m, zones: [us-central1-b]}]\n", true},
      {"    mode: bulk_insert\n    on_stockout: [{wait: 1m, mode: individual}]\n", false},
      {"    on_stockout: [{wait: 1m, mode: bulk_insert}]\n", false},
      {"    mode: individual\n", false},
      {"", false},
  }));
  INFO(lines);
  const auto seen = problems_of(minimal(lines + "    dws_flex: {max_run_duration: 30s}\n"));
  CHECK(seen.empty() == is_good);
}

TEST_CASE("race: as many as there are zones, or off", "[config]") {
  CHECK(problems_of(minimal("    race: 1\n")).empty());
  const auto loaded =
      parse_config(minimal("    race: 2\n    zones: [us-central1-a, us-central1-b]\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].race == 2);
}

TEST_CASE("race: is not held against zones that could not be read", "[config]") {
  const auto seen = problems_of(minimal("    race: 2\n    zones: [x, y]\n"));
  CHECK(seen.size() == 2);
}

TEST_CASE("on_stockout: keeps its steps in order, each with what it changes", "[config]") {
  const auto loaded = parse_config(minimal("    on_stockout:\n"
                                           "      - {wait: 30m, zones: [us-central1-b]}\n"
                                           "      - wait: 1h\n"
                                           "        mode: individual\n"
                                           "        instance_template: other\n"),
                                   "f");
  REQUIRE(loaded.ok());
  const auto& steps = loaded.config.nodesets[0].on_stockout;
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].wait == 30min);
  CHECK(steps[0].zones == std::vector<std::string>{"us-central1-b"});
  CHECK_FALSE(steps[0].mode);
  CHECK(steps[0].instance_template.empty());
  CHECK(steps[1].wait == 1h);
  CHECK(steps[1].zones.empty());
  CHECK(steps[1].mode == Mode::Individual);
  CHECK(steps[1].instance_template == "other");
}

TEST_CASE("on_stockout: a nodeset's list takes the place of the defaults', and may be empty",
          "[config]") {
  const auto loaded = parse_config(
      "region: us-central1\n"
      "defaults:\n  instance_template: t\n  on_stockout: [{wait: 1m, mode: individual},\n"
      "    {wait: 1m, mode: bulk_insert}]\n"
      "nodesets:\n  a: {nodes: a-1}\n"
      "  b: {nodes: b-1, on_stockout: [{wait: 2m, zones: [us-central1-a]}]}\n"
      "  c: {nodes: c-1, on_stockout: []}\n",
      "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].on_stockout.size() == 2);
  REQUIRE(loaded.config.nodesets[1].on_stockout.size() == 1);
  CHECK(loaded.config.nodesets[1].on_stockout[0].wait == 2min);
  CHECK(loaded.config.nodesets[2].on_stockout.empty());
}

TEST_CASE("on_stockout: a step beyond provision_timeout is warned of", "[config]") {
  const auto loaded = parse_config(minimal("    provision_timeout: 1h\n    on_stockout:\n"
                                           "      - {wait: 30m, mode: individual}\n"
                                           "      - {wait: 30m, mode: queued}\n"),
                                   "f");
  REQUIRE(loaded.ok());
  REQUIRE(loaded.config.warnings.size() == 1);
  CHECK_THAT(loaded.config.warnings[0],
             StartsWith("f:9:9: step 2 of on_stockout is never reached"));
}

TEST_CASE("on_stockout: the same zones in another order are the same zones", "[config]") {
  const auto seen = problems_of(
      minimal("    zones: [us-central1-a, us-central1-b]\n"
              "    on_stockout: [{wait: 1m, zones: [us-central1-b, us-central1-a]}]\n"));
  REQUIRE(seen.size() == 1);
  CHECK_THAT(seen[0], ContainsSubstring("changes nothing"));
}

TEST_CASE("lease_signal: by name, or none", "[config]") {
  const auto [text, number] = GENERATE(table<std::string, int>({
      {"URG", SIGURG},
      {"SIGURG", SIGURG},
      {"sigusr1", SIGUSR1},
      {"'TERM'", SIGTERM},
      {"none", 0},
  }));
  const auto loaded = parse_config(minimal("    lease_signal: " + text + "\n"), "f");
  REQUIRE(loaded.ok());
  CHECK(loaded.config.nodesets[0].lease_signal == number);
}

TEST_CASE("repair_reasons: the nodeset's list takes the place of the default one", "[config]") {
  const auto own = parse_config(minimal("    repair_reasons: [\"prolog error\", 79]\n"), "f");
  REQUIRE(own.ok());
  CHECK(own.config.nodesets[0].repair_reasons == std::vector<std::string>{"prolog error", "79"});
  const auto none = parse_config(minimal("    repair_reasons: []\n"), "f");
  REQUIRE(none.ok());
  CHECK(none.config.nodesets[0].repair_reasons.empty());
}

namespace {

bool is_repaired(std::string reason) {
  for (char& c : reason) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto reasons = default_repair_reasons();
  return std::any_of(reasons.begin(), reasons.end(), [&](const std::string& text) {
    return reason.find(text) != std::string::npos;
  });
}

}  // namespace

TEST_CASE("repair_reasons: by default what health checks write of a GPU", "[config]") {
  const auto reason = GENERATE(as<std::string>{},
                               "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.",
                               "XID",
                               "GPU issues detected: DCGM test failed, see /var/log/x.log",
                               "GPU issues detected: ECC errors found (2 double-bit errors)",
                               "NVLink errors detected (3 errors)",
                               "Failed DCGM, see /tmp/dcgm.out",
                               "Failed nvidia-smi, see /tmp/nvidia-smi.out",
                               "NHC: Check check_nv_gpu_count 8 returned 1",
                               "NHC: check_nvsmi_healthmon: nvidia-smi returned 14",
                               "NHC: check_gpu_ecc: GPU 3 has an uncorrectable ECC error",
                               "gres/gpu count reported lower than configured (7 < 8)");
  INFO(reason);
  CHECK(is_repaired(reason));
}

TEST_CASE("repair_reasons: by default nothing that an admin writes or that a new VM cannot mend",
          "[config]") {
  const auto reason = GENERATE(as<std::string>{},
                               "maintenance",
                               "GPU driver upgrade",
                               "nvidia driver 580 test",
                               "installing dcgm 4",
                               "/dev/sdc full",
                               "Prolog error",
                               "Kill task failed",
                               "Not responding",
                               "Low RealMemory",
                               "bob: hands off, debugging my gpu job",
                               "flex: lease ends 2026-11-16T10:00");
  INFO(reason);
  CHECK_FALSE(is_repaired(reason));
}

TEST_CASE("max_nodes: as many as the static nodes is enough", "[config]") {
  CHECK(problems_of(minimal("    static_nodes: a-[0-1]\n    max_nodes: 2\n")).empty());
}

TEST_CASE("group names: leaves nodesets alone whose groups differ", "[config]") {
  const auto lines = GENERATE(as<std::string>{},
                              "  a: {nodes: 'a-[1-2000]'}\n  a-2: {nodes: b-1}\n",
                              "  a: {nodes: 'a-[1-2001]'}\n  a-3: {nodes: b-1}\n",
                              "  a-j12: {nodes: b-1}\n  b: {nodes: a-1}\n",
                              "  a: {nodes: a-1}\n  a-job12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  aj12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j12-b: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-q1: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-s: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-zone: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-z: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-b-r: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  r: {nodes: b-1}\n",
                              "  a-r: {nodes: a-1}\n  a-i: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-2-3: {nodes: b-1}\n");
  CHECK(problems_of(nodesets(lines)) == std::vector<std::string>{});
}

TEST_CASE("group names: refuses nodesets that would share a group", "[config]") {
  const auto lines = GENERATE(as<std::string>{},
                              "  a: {nodes: 'a-[1-4001]'}\n  a-3: {nodes: b-1}\n",
                              "  a-2: {nodes: b-1}\n  a: {nodes: 'a-[1-2001]'}\n",
                              "  a: {nodes: a-1}\n  a-j12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j12-2: {nodes: b-1}\n",
                              "  a-b: {nodes: a-1}\n  a-b-j0: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-q: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-i: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-r: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-s12: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-zf: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-2-r: {nodes: b-1}\n",
                              "  a: {nodes: a-1}\n  a-j5-zai1b-r: {nodes: b-1}\n",
                              "  a-r: {nodes: a-1}\n  a-r-s1-2: {nodes: b-1}\n");
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
