// SPDX-License-Identifier: GPL-2.0-or-later
// Neighbours' files to flex-start.yaml: the samples under test/data/import, and what is refused.
#include "ctl/import/formats.h"
#include "lib/config/load.h"
#include "test/support/catch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace flex;

namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::filesystem::path sample(const std::string& name) {
  return std::filesystem::path(FLEX_SOURCE_DIR) / "test/data/import" / name;
}

Imported slurm_gcp(const std::string& text, const ImportOptions& options = {}) {
  return import_text(text, "f", read_slurm_gcp, options);
}

Imported vertex(const std::string& text, const ImportOptions& options = {}) {
  return import_text(text, "f", read_vertex, options);
}

std::vector<std::string> said(const Imported& imported) {
  std::vector<std::string> lines;
  for (const Problem& problem : imported.problems) lines.push_back(problem.text());
  return lines;
}

/// The config that comes of it; fails the test where there is none.
Config config_of(const Imported& imported) {
  for (const std::string& line : said(imported)) UNSCOPED_INFO(line);
  REQUIRE(imported.problems.empty());
  auto loaded = parse_config(imported.yaml, "out");
  REQUIRE(loaded.ok());
  return loaded.config;
}

bool has(const Report& report, Fate fate, const std::string& from, const std::string& to) {
  return std::any_of(report.entries.begin(), report.entries.end(), [&](const ReportEntry& entry) {
    return entry.fate == fate && entry.from == from && entry.to.find(to) != std::string::npos;
  });
}

/// A nodeset of SlurmGCP with Flex Start and all that it needs.
std::string flex_nodeset(const std::string& more) {
  return "nodeset_name: a\ndws_flex: {max_run_duration: 3600}\nzone: us-east4-a\n" + more;
}

}  // namespace

TEST_CASE("import: each sample becomes the file beside it, which loads", "[ctl]") {
  const auto [name, result] = GENERATE(table<std::string, std::string>({
      {"slurm_gcp/blueprint.yaml", "slurm_gcp/blueprint.expect"},
      {"slurm_gcp/config.yaml", "slurm_gcp/config.expect"},
      {"slurm_gcp/tfvars.json", "slurm_gcp/tfvars.expect"},
      {"slurm_gcp/nodeset.yaml", "slurm_gcp/nodeset.expect"},
      {"vertex/cluster.json", "vertex/cluster.expect"},
      {"vertex/pool.yaml", "vertex/pool.expect"},
  }));
  INFO(name);
  const auto path = sample(name);
  const Imported imported = import_text(read_all(path),
                                        path.filename().string(),
                                        name.starts_with("vertex") ? read_vertex : read_slurm_gcp,
                                        {});
  config_of(imported);
  CHECK(imported.yaml == read_all(sample(result)));
}

TEST_CASE("import slurm-gcp: says of every key of a nodeset what became of it", "[ctl]") {
  const Imported imported =
      slurm_gcp(flex_nodeset("disk_type: pd-ssd\nnode_conf: {Weight: 5}\nfrobnicate: 1\n"
                             "node_count_static: 1\n"));
  const Report& report = imported.report;
  config_of(imported);
  CHECK(has(report, Fate::Mapped, "nodeset_name", "nodesets.a"));
  CHECK(has(report, Fate::Mapped, "dws_flex.max_run_duration", "max_run_duration: 1h"));
  CHECK(has(report, Fate::Mapped, "zone", "nodesets.a.zones: us-east4-a"));
  CHECK(has(report, Fate::Mapped, "node_count_static", "static_nodes"));
  CHECK(has(report, Fate::NoEqual, "disk_type", ""));
  CHECK(has(report, Fate::NoEqual, "node_conf", ""));
  CHECK(has(report, Fate::NoEqual, "frobnicate", ""));
  CHECK(has(report, Fate::Assumed, "", "nodesets.a.instance_template: a-flex"));
  CHECK(has(report, Fate::Assumed, "", "use_job_duration: false"));
  CHECK_THAT(report.text(), ContainsSubstring("f:4:1: no equivalent: disk_type (belongs in the"));
}

TEST_CASE("import slurm-gcp: nodes are called as the toolkit does", "[ctl]") {
  const std::string text = flex_nodeset("node_count_static: 2\nnode_count_dynamic_max: 3\n");
  const Config named = config_of(slurm_gcp(text, {.cluster = "hpc"}));
  CHECK(named.cluster == "hpc");
  REQUIRE(named.nodesets[0].nodes.size() == 5);
  CHECK(named.nodesets[0].nodes[4].text == "hpc-a-4");
  CHECK(named.nodesets[0].static_nodes == std::vector<NodeName>{{"hpc-a-0"}, {"hpc-a-1"}});
  const Imported bare = slurm_gcp(text);
  CHECK(config_of(bare).nodesets[0].nodes[0].text == "a-0");
  CHECK(has(bare.report, Fate::Assumed, "", "nodesets.a.nodes"));
}

TEST_CASE("import slurm-gcp: the toolkit's defaults are written out", "[ctl]") {
  const Config config = config_of(slurm_gcp("dws_flex: {}\nzone: us-east4-a\n"));
  const NodesetConfig& nodeset = config.nodesets[0];
  CHECK(nodeset.nodes.size() == 10);
  CHECK(nodeset.static_nodes.empty());
  CHECK(nodeset.dws_flex.max_run_duration == kMaxRunDuration);
  CHECK_FALSE(nodeset.dws_flex.use_job_duration);
  CHECK(nodeset.mode == Mode::Queued);
}

TEST_CASE("import slurm-gcp: placement where Flex Start can, else it says why not", "[ctl]") {
  const auto [lines, distance, topology] = GENERATE(table<std::string, int, std::string>({
      {"machine_type: a4-highgpu-8g\nplacement_max_distance: 1\n", 1, ""},
      {"machine_type: a4-highgpu-8g\nplacement_max_distance: 1\nenable_placement: false\n", 0, ""},
      {"machine_type: a3-megagpu-8g\nplacement_max_distance: 1\n", 0, ""},
      {"machine_type: a4-highgpu-8g\naccelerator_topology: 2x4\n", 0, "2x4"},
      {"machine_type: a4-highgpu-8g\naccelerator_topology: big\n", 0, ""},
      {"placement_max_distance: 3\n", 3, ""},
      {"enable_placement: true\n", 0, ""},
  }));
  INFO(lines);
  const Imported imported = slurm_gcp(flex_nodeset(lines));
  const NodesetConfig nodeset = config_of(imported).nodesets[0];
  CHECK(nodeset.placement.max_distance == distance);
  CHECK(nodeset.placement.accelerator_topology == topology);
}

TEST_CASE("import slurm-gcp: use_bulk_insert is a mode, and has no placement", "[ctl]") {
  const Imported imported = slurm_gcp(
      "dws_flex: {use_bulk_insert: true, max_run_duration: 60}\nzone: us-east4-a\n"
      "machine_type: h4d-standard-192\nplacement_max_distance: 2\n");
  const NodesetConfig nodeset = config_of(imported).nodesets[0];
  CHECK(nodeset.mode == Mode::BulkInsert);
  CHECK(nodeset.dws_flex.max_run_duration == 1min);
  CHECK_FALSE(nodeset.placement.is_wanted());
  CHECK(has(imported.report, Fate::NoEqual, "placement_max_distance", ""));
}

TEST_CASE("import slurm-gcp: refuses what cannot be Flex Start, with place and reason", "[ctl]") {
  const auto [lines, expected] = GENERATE(table<std::string, std::string>({
      {"reservation_name: r1\n", "f:4:19: reservation_name: nodeset 'a' uses a reservation"},
      {"future_reservation: r1\n", "f:4:21: future_reservation: nodeset 'a' uses a reservation"},
      {"enable_spot_vm: true\n", "f:4:17: enable_spot_vm: nodeset 'a' uses Spot VMs"},
      {"spot: true\n", "f:4:7: spot: nodeset 'a' uses Spot VMs"},
      {"preemptible: true\n", "f:4:14: preemptible: nodeset 'a' uses Spot VMs"},
      {"zones: [nowhere]\n", "f:4:9: zones[0]: 'nowhere' is not a zone"},
      {"zones: [us-west1-a]\n", "f:4:9: zones[0]: zone 'us-west1-a' is not in region 'us-east4'"},
      {"node_count_static: -1\n", "f:4:20: node_count_static cannot be '-1'"},
      {"node_count_dynamic_max: 0\n", "f:1:1: nodeset 'a' has no nodes"},
      {"machine_type: $(vars.type)\n", "f:4:15: machine_type is '$(vars.type)'"},
      {"instance_template: a b\n", "f:4:20: instance_template: 'a b' is not an instance template"},
      {"region: moon\n", "f:4:9: region: 'moon' is not a region"},
      {"enable_placement: maybe\n", "f:4:19: enable_placement cannot be 'maybe'"},
  }));
  const Imported imported = slurm_gcp(flex_nodeset(lines));
  CHECK(imported.yaml.empty());
  const auto lines_said = said(imported);
  REQUIRE(lines_said.size() == 1);
  CHECK_THAT(lines_said[0], StartsWith(expected));
}

TEST_CASE("import slurm-gcp: a reservation of a nodeset without Flex Start is not ours", "[ctl]") {
  const Imported imported = slurm_gcp(
      "nodeset:\n  a: {dws_flex: {}, zone: us-east4-a}\n  b: {reservation_name: r, spot: true}\n");
  CHECK(config_of(imported).nodesets.size() == 1);
  CHECK(has(imported.report, Fate::LeftOut, "nodeset b", ""));
}

TEST_CASE("import: only the nodesets that are asked for", "[ctl]") {
  const std::string text =
      "nodeset:\n  a: {dws_flex: {}, zone: us-east4-a}\n  b: {dws_flex: {}, zone: us-west1-a}\n";
  CHECK(said(slurm_gcp(text)).size() == 1);
  const Config config = config_of(slurm_gcp(text, {.nodesets = {"b"}}));
  REQUIRE(config.nodesets.size() == 1);
  CHECK(config.nodesets[0].name == "b");
  CHECK(config.region == "us-west1");
  const auto missing = said(slurm_gcp(text, {.nodesets = {"c"}}));
  REQUIRE(missing.size() == 1);
  CHECK_THAT(missing[0], ContainsSubstring("no Flex Start nodeset 'c'"));
}

TEST_CASE("import vertex: both spellings, durations and counts", "[ctl]") {
  const auto text = GENERATE(
      as<std::string>{},
      R"({"id": "p", "provisioning_model": "FLEX_START", "flex_start_max_duration": "3600s",
          "scaling_spec": {"min_node_count": 1, "max_node_count": 2}, "zone": "us-east4-a"})",
      R"([{"id": "p", "provisioningModel": "FLEX_START", "flexStartMaxDuration": "3600s",
          "scalingSpec": {"minNodeCount": "1", "maxNodeCount": "2"}, "zone": "us-east4-a"}])");
  const Config config = config_of(vertex(text));
  CHECK(config.region == "us-east4");
  CHECK(config.nodesets[0].name == "p");
  CHECK(config.nodesets[0].nodes.size() == 2);
  CHECK(config.nodesets[0].static_nodes.size() == 1);
  CHECK(config.nodesets[0].dws_flex.max_run_duration == 1h);
}

TEST_CASE("import vertex: a pool without a place gets a region to fill in", "[ctl]") {
  const Imported imported =
      vertex("provisioning_model: FLEX_START\nscaling_spec: {max_node_count: 4}\n");
  config_of(imported);
  CHECK(has(imported.report, Fate::Assumed, "", "region: us-central1"));
  CHECK_THAT(imported.yaml, ContainsSubstring("# fill in yours"));
}

TEST_CASE("import vertex: VMs in groups live for ten minutes at least", "[ctl]") {
  const Imported imported = vertex(
      "{id: p, zone: us-east4-a, provisioning_model: FLEX_START, flex_start_max_duration: 60s,\n"
      " scaling_spec: {max_node_count: 1}}");
  CHECK(config_of(imported).nodesets[0].dws_flex.max_run_duration == 10min);
  CHECK(has(imported.report, Fate::Assumed, "", "max_run_duration: 10m"));
}

TEST_CASE("import vertex: refuses what cannot be, with place and reason", "[ctl]") {
  const auto [line, expected] = GENERATE(table<std::string, std::string>({
      {"scaling_spec: {min_node_count: 3, max_node_count: 2}", "f:3:15: node pool 'p' has 3 to 2"},
      {"scaling_spec: {max_node_count: 0}", "f:3:15: node pool 'p' has 0 to 0 nodes"},
      {"boot_disk: {}", "f:1:1: node pool 'p' has no scaling_spec"},
      {"scaling_spec: {max_node_count: 1}\nflex_start_max_duration: 8d",
       "f:4:26: flex_start_max_duration cannot be '8d'"},
      {"scaling_spec: {max_node_count: 1}\nflex_start_max_duration: 604801s",
       "f:4:26: flex_start_max_duration cannot be 604801 seconds"},
      {"scaling_spec: {max_node_count: 1}\nzone: <zone>", "f:4:7: zone: '<zone>' is not a zone"},
      {"scaling_spec: {max_node_count: 1}\nmachine_spec: {reservation_affinity: "
       "{reservation_affinity_type: SPECIFIC_RESERVATION}}",
       "f:4:66: machine_spec.reservation_affinity: node pool 'p' uses a reservation"},
  }));
  const auto lines = said(vertex("id: p\nprovisioning_model: FLEX_START\n" + line + "\n"));
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], StartsWith(expected));
}

TEST_CASE("import: refuses what is no such file", "[ctl]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>({
      {"", "f:"},
      {"just words", "f:1:1: this is neither"},
      {"[1, 2", "f:"},
      {"{}", "f: no Flex Start nodeset in this file"},
      {"nodeset = [{\n", "f:1:1: this is Terraform's own language"},
      {"a: &x 1\nb: *x\n", "f:1:4: an anchor"},
      {"nodeset: 7\n", "f:"},
      {"nodeset: [7]\n", "f:1:11: nodeset[0] must be a section"},
      {"dws_flex: true\n", "f:1:11: dws_flex must be a section"},
  }));
  INFO(text);
  const auto lines = said(slurm_gcp(text));
  REQUIRE_FALSE(lines.empty());
  CHECK_THAT(lines[0], StartsWith(expected));
}

TEST_CASE("report: as JSON it has each setting with its place", "[ctl]") {
  const Imported imported = slurm_gcp(flex_nodeset("spot: true\n"));
  const auto json = nlohmann::json::parse(to_json(imported.report, imported.problems));
  CHECK(json["file"] == "f");
  REQUIRE(json["problems"].size() == 1);
  CHECK(json["problems"][0]["place"]["line"] == 4);
  CHECK(json["report"].size() == imported.report.entries.size());
  CHECK(json["report"][0]["fate"].is_string());
}
