// SPDX-License-Identifier: GPL-2.0-or-later
// Node pools of Slurm on Vertex AI (training clusters), in snake_case or camelCase.
#include "ctl/import/formats.h"
#include "lib/config/shapes.h"
#include "lib/core/duration.h"

#include <fmt/format.h>

#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostNodes = 65536;
constexpr std::string_view kTemplate = "belongs in the instance template";

std::string_view where_else(std::string_view key) {
  const std::string name = to_snake(key);
  for (const std::string_view known : {"accelerator_type",
                                       "accelerator_count",
                                       "boot_disk",
                                       "enable_public_ips",
                                       "lustres",
                                       "network",
                                       "service_account",
                                       "startup_script"})
    if (name == known) return kTemplate;
  if (name == "orchestrator_spec") return "belongs in slurm.conf";
  if (name == "display_name") return "the cluster's name is ClusterName of slurm.conf";
  return "not known here";
}

/// The part after `name` in "projects/P/locations/R/…".
std::string part_after(std::string_view path, std::string_view name) {
  const std::size_t at = path.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = path.substr(at + name.size());
  return std::string(rest.substr(0, rest.find('/')));
}

class Vertex {
 public:
  Vertex(const ImportOptions& options, Import& out)
      : options_(options),
        out_(out),
        source_{.problems = out.problems, .spelling = Spelling::Any} {}

  void read(const TreeNode& root);

 private:
  void read_cluster(Block& block);
  void read_pool(Block& block);
  bool is_flex(Block& block, const std::string& name);
  bool read_counts(Block& block, NodesetDraft& nodeset);
  void read_duration(Block& block, NodesetDraft& nodeset);
  bool read_machine(Block& block, NodesetDraft& nodeset);
  void read_zone(Block& block, NodesetDraft& nodeset);
  void report_rest(const Block& block);

  const ImportOptions& options_;
  Import& out_;
  Source source_;
};

void Vertex::report_rest(const Block& block) {
  for (const TreeNode* key : block.rest())
    out_.no_equal(key->mark, block.path() + key->text, std::string(where_else(key->text)));
}

void Vertex::read_cluster(Block& block) {
  if (const auto name = block.text("name")) {
    const std::string project = part_after(*name, "projects/");
    const std::string region = part_after(*name, "locations/");
    if (is_project(project)) {
      out_.draft.project = project;
      out_.mapped(name.mark, name.from, "project: " + project);
    }
    if (is_region(region)) {
      out_.draft.region = region;
      out_.mapped(name.mark, name.from, "region: " + region);
    }
    if (!is_project(project) && !is_region(region))
      out_.no_equal(name.mark, name.from, "it names neither a project nor a region");
  }
}

bool Vertex::is_flex(Block& block, const std::string& name) {
  const auto model = block.text("provisioning_model");
  if (model && model.value->ends_with("FLEX_START")) {
    out_.mapped(model.mark, model.from, fmt::format("nodesets.{}", name));
    return true;
  }
  out_.left_out(model ? model.mark : block.mark(),
                fmt::format("node pool {}", name),
                model ? fmt::format("its provisioning model is {}", show(*model))
                      : "it has no provisioning_model FLEX_START");
  return false;
}

bool Vertex::read_counts(Block& block, NodesetDraft& nodeset) {
  auto scaling = block.section("scaling_spec");
  if (!scaling) {
    out_.problems.add(block.mark(),
                      fmt::format("node pool '{}' has no scaling_spec", nodeset.name),
                      "it says how many nodes there are: min_node_count and max_node_count");
    return false;
  }
  const auto least = scaling->number("min_node_count", kMostNodes);
  const auto most = scaling->number("max_node_count", kMostNodes);
  nodeset.static_count = least.value.value_or(0);
  nodeset.node_count = most.value.value_or(nodeset.static_count);
  if (nodeset.node_count == 0 || nodeset.node_count < nodeset.static_count) {
    out_.problems.add(scaling->mark(),
                      fmt::format("node pool '{}' has {} to {} nodes",
                                  nodeset.name,
                                  nodeset.static_count,
                                  nodeset.node_count),
                      "max_node_count must be at least 1, and not less than min_node_count");
    return false;
  }
  if (most) {
    out_.mapped(
        most.mark, most.from, nodeset.path(fmt::format("nodes: {} in all", nodeset.node_count)));
  } else {
    out_.assumed(scaling->mark(),
                 nodeset.path(fmt::format("nodes: {} in all", nodeset.node_count)),
                 "max_node_count is not said");
  }
  if (least) {
    out_.mapped(least.mark,
                least.from,
                nodeset.path(nodeset.static_count > 0
                                 ? fmt::format("static_nodes: the first {}", nodeset.static_count)
                                 : std::string("static_nodes: none")));
  }
  report_rest(*scaling);
  return true;
}

void Vertex::read_duration(Block& block, NodesetDraft& nodeset) {
  const auto duration = block.duration("flex_start_max_duration");
  if (duration && (*duration < kMinBulkDuration || *duration > kMaxRunDuration)) {
    out_.problems.add(
        duration.mark,
        fmt::format("{} cannot be {} seconds", duration.from, duration.value->count()),
        fmt::format("at most {}", kMaxRunDuration.count()));
    return;
  }
  if (duration) nodeset.max_run_duration = std::max(*duration, kMinRunDuration);
  const std::string text =
      nodeset.path("dws_flex.max_run_duration: " + format_duration(nodeset.max_run_duration));
  if (duration && *duration >= kMinRunDuration) {
    out_.mapped(duration.mark, duration.from, text);
  } else if (duration) {
    out_.assumed(duration.mark, text, "VMs in groups live for ten minutes at least");
  } else {
    out_.assumed(block.mark(), text, "Vertex's default");
  }
  out_.assumed(block.mark(),
               nodeset.path("dws_flex.use_job_duration: false"),
               "as on Vertex; true, our default, ends VMs with the job's time limit");
}

bool Vertex::read_machine(Block& block, NodesetDraft& nodeset) {
  auto machine = block.section("machine_spec");
  if (!machine) return true;
  if (const auto type = machine->text("machine_type"); type && !is_machine_type(*type)) {
    out_.problems.add(type.mark,
                      fmt::format("{}: {} is not a machine type", type.from, show(*type)));
  } else if (type) {
    nodeset.machine_type = *type;
    out_.mapped(type.mark, type.from, nodeset.path("machine_type: " + *type));
  }
  bool is_good = true;
  if (auto affinity = machine->section("reservation_affinity")) {
    const auto type = affinity->text("reservation_affinity_type");
    is_good = type && type.value->ends_with("NO_RESERVATION");
    if (is_good) {
      out_.mapped(type.mark, type.from, "Flex Start VMs never come from a reservation");
    } else {
      out_.problems.add(type ? type.mark : affinity->mark(),
                        fmt::format("{}: node pool '{}' uses a reservation",
                                    machine->path() + "reservation_affinity",
                                    nodeset.name),
                        "Flex Start VMs never come from a reservation: remove it");
    }
  }
  report_rest(*machine);
  return is_good;
}

void Vertex::read_zone(Block& block, NodesetDraft& nodeset) {
  const auto zone = block.text("zone");
  nodeset.zones = good_zones({zone}, out_);
  if (nodeset.zones.empty()) return;
  out_.mapped(zone.mark, zone.from, nodeset.path("zones: " + *zone));
  if (out_.draft.region.empty()) out_.draft.region = region_of(*zone);
  if (region_of(*zone) == out_.draft.region) return;
  out_.problems.add(
      zone.mark,
      fmt::format("{}: zone '{}' is not in region '{}'", zone.from, *zone, out_.draft.region),
      "one flex-start.yaml serves one region: choose with --nodeset");
}

void Vertex::read_pool(Block& block) {
  const auto id = block.text("id");
  NodesetDraft nodeset{.name = id ? to_rfc1035(*id) : "pool"};
  if (!is_asked_for(options_, nodeset.name)) {
    out_.left_out(block.mark(), "node pool " + nodeset.name, "not asked for with --nodeset");
    return;
  }
  if (!is_flex(block, nodeset.name)) return;
  if (id) {
    out_.mapped(id.mark, id.from, "nodesets." + nodeset.name);
  } else {
    out_.assumed(block.mark(), "nodesets.pool", "the node pool has no id here: fill in a name");
  }
  nodeset.prefix = options_.cluster.empty() ? nodeset.name
                                            : fmt::format("{}-{}", options_.cluster, nodeset.name);
  out_.assumed(block.mark(),
               nodeset.path(fmt::format("nodes: {}-…", nodeset.prefix)),
               "the names of the nodes in slurm.conf are yours to choose");
  if (!read_counts(block, nodeset) || !read_machine(block, nodeset)) return;
  read_duration(block, nodeset);
  read_zone(block, nodeset);
  make_up_template(nodeset, block.mark(), out_);
  report_rest(block);
  out_.draft.nodesets.push_back(std::move(nodeset));
}

void Vertex::read(const TreeNode& root) {
  out_.draft.cluster = options_.cluster;
  if (root.kind == TreeNode::Kind::Sequence) {
    TreeNode all{.kind = TreeNode::Kind::Map, .mark = root.mark};
    all.keys.push_back({.kind = TreeNode::Kind::Scalar, .mark = root.mark, .text = "node_pools"});
    all.items.push_back(root);
    read(all);
    return;
  }
  if (root.kind != TreeNode::Kind::Map) {
    out_.problems.add(root.mark,
                      "this is neither a cluster nor a node pool",
                      "give the JSON or YAML with node_pools, or one of them");
    return;
  }
  Block block{source_, root, ""};
  if (child(root, "node_pools", Spelling::Any) == nullptr) {
    read_pool(block);
    return;
  }
  read_cluster(block);
  for (Block& pool : block.sections("node_pools")) read_pool(pool);
  report_rest(block);
}

}  // namespace

void read_vertex(const TreeNode& root, const ImportOptions& options, Import& out) {
  Vertex{options, out}.read(root);
}

}  // namespace flex
