// SPDX-License-Identifier: GPL-2.0-or-later
// Nodesets of the Cluster Toolkit's schedmd-slurm-gcp-v6-nodeset.
#include "ctl/import/formats.h"
#include "lib/config/shapes.h"
#include "lib/core/duration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace flex {

namespace {

/// More nodes than a cluster has.
constexpr std::size_t kMostNodes = 65536;
/// What a nodeset has that does not say.
constexpr std::size_t kDynamicNodes = 10;
constexpr std::size_t kLongestName = 14;
constexpr std::size_t kLongestCluster = 10;

constexpr std::string_view kTemplate = "belongs in the instance template";
constexpr std::string_view kSlurmConf = "belongs in slurm.conf";

/// Where settings belong that are not ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 53> kElsewhere{{
    {"access_config", kTemplate},
    {"additional_disks", kTemplate},
    {"additional_networks", kTemplate},
    {"advanced_machine_features", kTemplate},
    {"allow_automatic_updates", kTemplate},
    {"bandwidth_tier", kTemplate},
    {"can_ip_forward", kTemplate},
    {"confidential_instance_type", kTemplate},
    {"disk_auto_delete", kTemplate},
    {"disk_encryption_key", kTemplate},
    {"disk_labels", kTemplate},
    {"disk_resource_manager_tags", kTemplate},
    {"disk_size_gb", kTemplate},
    {"disk_storage_pool", kTemplate},
    {"disk_type", kTemplate},
    {"enable_confidential_vm", kTemplate},
    {"enable_oslogin", kTemplate},
    {"enable_public_ips", kTemplate},
    {"enable_shielded_vm", kTemplate},
    {"gpu", kTemplate},
    {"guest_accelerator", kTemplate},
    {"instance_image", kTemplate},
    {"instance_image_custom", kTemplate},
    {"instance_properties", kTemplate},
    {"instance_properties_json", kTemplate},
    {"internal_ghpc_deployment_folder", "the toolkit's own"},
    {"labels", kTemplate},
    {"machine_configs", "one machine type for a nodeset: make a nodeset of each"},
    {"maintenance_interval", kTemplate},
    {"metadata", kTemplate},
    {"mig_name", "groups have names of our own"},
    {"min_cpu_platform", kTemplate},
    {"network_storage", "belongs in the image or its start-up script"},
    {"node_conf", kSlurmConf},
    {"on_host_maintenance", "Flex Start VMs need TERMINATE, in the instance template"},
    {"provisioning_engine", "Flex Start VMs come from groups unless mode is bulk_insert"},
    {"resource_manager_tags", kTemplate},
    {"service_account", kTemplate},
    {"service_account_email", kTemplate},
    {"service_account_scopes", kTemplate},
    {"shielded_instance_config", kTemplate},
    {"source_image", kTemplate},
    {"source_image_family", kTemplate},
    {"source_image_project", kTemplate},
    {"spot_instance_config", "Flex Start VMs are not Spot VMs"},
    {"startup_script", kTemplate},
    {"subnetwork", kTemplate},
    {"subnetwork_self_link", kTemplate},
    {"tags", kTemplate},
    {"termination_action", "Flex Start VMs need DELETE, in the instance template"},
    {"zone_policy_deny", "the zones that are meant are written out"},
    {"enable_maintenance_reservation", "Flex Start VMs have no scheduled maintenance"},
    {"enable_opportunistic_maintenance", "Flex Start VMs have no scheduled maintenance"},
}};

std::string_view where_else(std::string_view key) {
  for (const auto& [name, note] : kElsewhere)
    if (name == key) return note;
  return "not known here";
}

/// As the toolkit makes them: what is no lower-case letter or digit is dropped.
std::string only_plain(std::string_view text, std::size_t longest) {
  std::string plain;
  for (const char c : text)
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  return plain.substr(0, longest);
}

/// What stands for the deployment, without the leading digits.
std::string cluster_of_deployment(std::string_view deployment) {
  std::string lower(deployment);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t letter = lower.find_first_of("abcdefghijklmnopqrstuvwxyz");
  return letter == std::string::npos ? std::string{}
                                     : only_plain(lower.substr(letter), kLongestCluster);
}

/// The region in ".../regions/us-central1/subnetworks/net".
std::string region_in_link(std::string_view link) {
  constexpr std::string_view kRegions = "regions/";
  const std::size_t at = link.find(kRegions);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = link.substr(at + kRegions.size());
  const std::string region(rest.substr(0, rest.find('/')));
  return is_region(region) ? region : std::string{};
}

/// One file's nodesets.
class SlurmGcp {
 public:
  SlurmGcp(const ImportOptions& options, Import& out)
      : options_(options), out_(out), source_{.problems = out.problems} {}

  void read(const TreeNode& root);

 private:
  struct Found {
    const TreeNode& settings;
    std::string path{};
    std::string name{};  ///< empty: only the settings can tell
    Mark mark{};
  };

  void read_blueprint(const TreeNode& root);
  void find_modules(const TreeNode& list, std::vector<Found>& found);
  void find_nodesets(const TreeNode& value, std::vector<Found>& found);
  void read_cluster(const TreeNode& root);
  void report_others(const TreeNode& root);
  void set_cluster(const Taken<std::string>& name);
  void read_nodeset(const Found& found);
  bool is_flex(Block& block, const Found& found, const std::string& name, NodesetDraft& nodeset);
  bool refuse_others(Block& block, const std::string& name);
  bool read_counts(Block& block, NodesetDraft& nodeset);
  void read_template(Block& block, NodesetDraft& nodeset);
  void read_zones(Block& block, NodesetDraft& nodeset);
  void read_placement(Block& block, NodesetDraft& nodeset);
  void report_rest(const Block& block);

  const ImportOptions& options_;
  Import& out_;
  Source source_;
};

void SlurmGcp::set_cluster(const Taken<std::string>& name) {
  if (!name || !out_.draft.cluster.empty()) return;
  if (!is_cluster_name(*name) || !is_rfc1035(*name)) {
    out_.problems.add(name.mark,
                      fmt::format("{}: {} is not a good cluster name", name.from, show(*name)),
                      "the names of VMs begin with it: lower-case letters, digits and '-', a "
                      "letter first, at most 40");
    return;
  }
  out_.draft.cluster = *name;
  out_.mapped(name.mark, name.from, "cluster: " + *name);
}

/// Cluster, project and region, where the file as a whole says them.
void SlurmGcp::read_cluster(const TreeNode& root) {
  Block block{source_, root, ""};
  if (!options_.cluster.empty()) out_.draft.cluster = options_.cluster;
  set_cluster(block.text("slurm_cluster_name"));
  if (const auto name = block.text("deployment_name"); name && out_.draft.cluster.empty()) {
    out_.draft.cluster = cluster_of_deployment(*name);
    if (!out_.draft.cluster.empty())
      out_.assumed(name.mark,
                   "cluster: " + out_.draft.cluster,
                   fmt::format("made from {} as the toolkit does", name.from));
  }
  for (const std::string_view key : {"project_id", "project"}) {
    const auto project = block.text(key);
    if (!project || !out_.draft.project.empty()) continue;
    if (is_project(*project)) {
      out_.draft.project = *project;
      out_.mapped(project.mark, project.from, "project: " + *project);
    } else {
      out_.problems.add(project.mark,
                        fmt::format("{}: {} is not a project's id", project.from, show(*project)));
    }
  }
}

/// Lists of modules are found wherever they are; the settings of other modules are not ours.
void SlurmGcp::find_modules(const TreeNode& list, std::vector<Found>& found) {
  for (const TreeNode& module : list.items) {
    const TreeNode* const source = child(module, "source");
    const TreeNode* const settings = child(module, "settings");
    const TreeNode* const id = child(module, "id");
    const std::string name = id == nullptr ? std::string{} : id->text;
    if (source == nullptr || settings == nullptr || settings->kind != TreeNode::Kind::Map) {
      out_.left_out(module.mark, "module " + name, "it has no settings");
      continue;
    }
    if (source->text.find("schedmd-slurm-gcp-v6-controller") != std::string::npos) {
      Block block{source_, *settings, name + ".settings."};
      set_cluster(block.text("slurm_cluster_name"));
    } else if (source->text.ends_with("schedmd-slurm-gcp-v6-nodeset")) {
      found.push_back({*settings, name + ".settings.", name, module.mark});
      continue;
    }
    out_.left_out(module.mark, "module " + name, "not a nodeset");
  }
}

void SlurmGcp::read_blueprint(const TreeNode& root) {
  if (const TreeNode* vars = child(root, "vars");
      vars != nullptr && vars->kind == TreeNode::Kind::Map)
    source_.vars = vars;
  if (!options_.cluster.empty()) out_.draft.cluster = options_.cluster;
  std::vector<Found> found;
  const TreeNode* const groups = child(root, "deployment_groups");
  for (const TreeNode& group : groups->items)
    if (const TreeNode* const modules = child(group, "modules")) find_modules(*modules, found);
  // The controller's own setting wins over `vars`, so it was looked for first.
  const TreeNode nothing{.kind = TreeNode::Kind::Map};
  read_cluster(nothing);
  for (const Found& one : found) read_nodeset(one);
}

/// `nodeset`: a map by name on a controller, a list among Terraform's variables.
void SlurmGcp::find_nodesets(const TreeNode& value, std::vector<Found>& found) {
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    const bool is_map = value.kind == TreeNode::Kind::Map;
    const std::string name = is_map ? value.keys[i].text : std::string{};
    const std::string path = is_map ? "nodeset." + name : fmt::format("nodeset[{}]", i);
    const Mark mark = is_map ? value.keys[i].mark : value.items[i].mark;
    if (value.items[i].kind == TreeNode::Kind::Map) {
      found.push_back({value.items[i], path + ".", name, mark});
    } else {
      out_.problems.add(mark, fmt::format("{} must be a section", path));
    }
  }
}

/// What a controller's file has besides.
void SlurmGcp::report_others(const TreeNode& root) {
  Block block{source_, root, ""};
  for (const std::string_view key :
       {"nodeset", "slurm_cluster_name", "deployment_name", "project_id", "project"})
    static_cast<void>(block.has(key));
  for (const TreeNode* key : block.rest())
    out_.no_equal(key->mark, key->text, "of the cluster, not of its Flex Start nodesets");
}

void SlurmGcp::read(const TreeNode& root) {
  std::vector<Found> found;
  if (root.kind == TreeNode::Kind::Sequence) {
    const bool is_modules = !root.items.empty() && child(root.items.front(), "source") != nullptr;
    if (!options_.cluster.empty()) out_.draft.cluster = options_.cluster;
    if (is_modules) {
      find_modules(root, found);
    } else {
      find_nodesets(root, found);
    }
  } else if (root.kind != TreeNode::Kind::Map) {
    out_.problems.add(root.mark,
                      "this is neither a blueprint nor a nodeset",
                      "give a blueprint, a controller's config.yaml or a nodeset's settings");
    return;
  } else if (child(root, "deployment_groups") != nullptr) {
    read_blueprint(root);
    return;
  } else {
    const TreeNode* const nodesets = child(root, "nodeset");
    const TreeNode* const settings = child(root, "settings");
    read_cluster(root);
    if (nodesets != nullptr) {
      find_nodesets(*nodesets, found);
      report_others(root);
    } else if (settings != nullptr && settings->kind == TreeNode::Kind::Map) {
      const TreeNode* const id = child(root, "id");
      found.push_back({*settings, "settings.", id == nullptr ? "" : id->text, root.mark});
    } else {
      found.push_back({root, "", "", root.mark});
    }
  }
  for (const Found& one : found) read_nodeset(one);
}

/// Why a nodeset with Flex Start cannot be what it says besides.
bool SlurmGcp::refuse_others(Block& block, const std::string& name) {
  bool is_refused = false;
  for (const std::string_view key : {"reservation_name", "future_reservation"}) {
    const auto reservation = block.text(key);
    if (!reservation) continue;
    out_.problems.add(reservation.mark,
                      fmt::format("{}: nodeset '{}' uses a reservation", reservation.from, name),
                      "Flex Start VMs never come from a reservation: remove it, or dws_flex");
    is_refused = true;
  }
  for (const std::string_view key : {"enable_spot_vm", "spot", "preemptible"}) {
    const auto spot = block.boolean(key);
    if (!spot || !*spot) continue;
    out_.problems.add(spot.mark,
                      fmt::format("{}: nodeset '{}' uses Spot VMs", spot.from, name),
                      "a VM is either Spot or Flex Start: remove it, or dws_flex");
    is_refused = true;
  }
  return is_refused;
}

/// Reads `dws_flex`. False: the nodeset does not use Flex Start.
bool SlurmGcp::is_flex(Block& block,
                       const Found& found,
                       const std::string& name,
                       NodesetDraft& nodeset) {
  auto flex = block.section("dws_flex");
  const auto enabled = flex ? flex->boolean("enabled") : Taken<bool>{};
  if (!flex || (enabled && !*enabled)) {
    out_.left_out(flex ? enabled.mark : found.mark,
                  fmt::format("nodeset {}", name),
                  flex ? "dws_flex.enabled is false" : "it has no dws_flex");
    return false;
  }
  if (enabled) out_.mapped(enabled.mark, enabled.from, fmt::format("nodesets.{}", name));
  if (const auto bulk = flex->boolean("use_bulk_insert"); bulk && *bulk) {
    nodeset.mode = Mode::BulkInsert;
    out_.mapped(bulk.mark, bulk.from, nodeset.path("mode: bulk_insert"));
  } else if (bulk) {
    out_.mapped(bulk.mark, bulk.from, nodeset.path("mode: queued"));
  }
  const auto duration = flex->duration("max_run_duration");
  const Seconds least = nodeset.mode == Mode::BulkInsert ? kMinBulkDuration : kMinRunDuration;
  if (duration && (*duration < least || *duration > kMaxRunDuration)) {
    out_.problems.add(
        duration.mark,
        fmt::format("{} cannot be {} seconds", duration.from, duration.value->count()),
        fmt::format("from {} to {}", least.count(), kMaxRunDuration.count()));
  } else if (duration) {
    nodeset.max_run_duration = *duration;
  }
  const std::string text =
      nodeset.path("dws_flex.max_run_duration: " + format_duration(nodeset.max_run_duration));
  if (duration) {
    out_.mapped(duration.mark, duration.from, text);
  } else {
    out_.assumed(flex->mark(), text, "the toolkit's default");
  }
  const auto use_job = flex->boolean("use_job_duration");
  nodeset.use_job_duration = use_job && *use_job;
  const std::string uses =
      nodeset.path(fmt::format("dws_flex.use_job_duration: {}", nodeset.use_job_duration));
  if (use_job) {
    out_.mapped(use_job.mark, use_job.from, uses);
  } else {
    out_.assumed(flex->mark(), uses, "the toolkit's default; ours is true");
  }
  report_rest(*flex);
  return true;
}

bool SlurmGcp::read_counts(Block& block, NodesetDraft& nodeset) {
  const auto fixed = block.number("node_count_static", kMostNodes);
  const auto dynamic = block.number("node_count_dynamic_max", kMostNodes);
  nodeset.static_count = fixed.value.value_or(0);
  nodeset.node_count = nodeset.static_count + dynamic.value.value_or(kDynamicNodes);
  if (nodeset.node_count == 0) {
    out_.problems.add(block.mark(),
                      fmt::format("nodeset '{}' has no nodes", nodeset.name),
                      "node_count_static and node_count_dynamic_max are 0");
    return false;
  }
  if (fixed && nodeset.static_count > 0) {
    out_.mapped(fixed.mark,
                fixed.from,
                nodeset.path(fmt::format("static_nodes: the first {}", nodeset.static_count)));
  } else if (fixed) {
    out_.mapped(fixed.mark, fixed.from, nodeset.path("static_nodes: none"));
  }
  const std::string nodes = nodeset.path(fmt::format("nodes: {} in all", nodeset.node_count));
  if (dynamic) {
    out_.mapped(dynamic.mark, dynamic.from, nodes);
  } else {
    out_.assumed(block.mark(), nodes, "node_count_dynamic_max is 10 where it is not said");
  }
  return true;
}

void SlurmGcp::read_template(Block& block, NodesetDraft& nodeset) {
  if (const auto type = block.text("machine_type"); type && !is_machine_type(*type)) {
    out_.problems.add(type.mark,
                      fmt::format("{}: {} is not a machine type", type.from, show(*type)));
  } else if (type) {
    nodeset.machine_type = *type;
    out_.mapped(type.mark, type.from, nodeset.path("machine_type: " + *type));
  }
  auto found = block.text("instance_template");
  if (!found) {
    make_up_template(nodeset, block.mark(), out_);
    return;
  }
  // A link that names one version of the template, too.
  std::string name = found.value->substr(0, found.value->find('?'));
  if (!is_template(name)) {
    out_.problems.add(found.mark,
                      fmt::format("{}: {} is not an instance template", found.from, show(name)));
    return;
  }
  nodeset.instance_template = std::move(name);
  out_.mapped(
      found.mark, found.from, nodeset.path("instance_template: " + nodeset.instance_template));
  if (nodeset.mode == Mode::BulkInsert) {
    out_.assumed(found.mark,
                 nodeset.path("instance_template"),
                 "the toolkit's templates for bulk insert do not say FLEX_START: check it");
  }
}

/// The toolkit takes `zone` and `zones` together, and writes both as zone_policy_allow.
void SlurmGcp::read_zones(Block& block, NodesetDraft& nodeset) {
  std::vector<Taken<std::string>> zones = block.texts("zone_policy_allow");
  const auto one = block.text("zone");
  if (one) zones.push_back(one);
  for (auto& zone : block.texts("zones")) zones.push_back(std::move(zone));
  nodeset.zones = good_zones(zones, out_);
  for (const auto& zone : zones) out_.mapped(zone.mark, zone.from, nodeset.path("zones: " + *zone));

  const auto region = block.text("region");
  const auto subnetwork = block.text("subnetwork_self_link");
  const auto other = block.text("subnetwork");
  std::string said;
  if (region && !is_region(*region)) {
    out_.problems.add(region.mark,
                      fmt::format("{}: {} is not a region", region.from, show(*region)),
                      "a region is like us-central1");
  } else if (region) {
    said = *region;
    out_.mapped(region.mark, region.from, "region: " + *region);
  }
  for (const auto& link : {subnetwork, other}) {
    if (!link) continue;
    out_.no_equal(link.mark, link.from, std::string(kTemplate));
    if (said.empty()) said = region_in_link(*link);
  }
  if (said.empty() && !nodeset.zones.empty()) said = region_of(nodeset.zones.front());
  if (said.empty()) return;
  if (out_.draft.region.empty()) out_.draft.region = said;
  for (const auto& zone : zones) {
    if (!is_zone(*zone) || region_of(*zone) == out_.draft.region) continue;
    out_.problems.add(
        zone.mark,
        fmt::format("{}: zone '{}' is not in region '{}'", zone.from, *zone, out_.draft.region),
        "one flex-start.yaml serves one region: choose with --nodeset");
  }
  if (const auto shape = block.text("zone_target_shape"); shape && *shape != "ANY_SINGLE_ZONE") {
    out_.no_equal(shape.mark, shape.from, "each request is served in one zone");
  } else if (shape) {
    out_.mapped(shape.mark, shape.from, nodeset.path("zones (each request is served in one zone)"));
  }
}

/// Why the nodeset cannot have placement; empty: it can.
std::string why_not_placed(const NodesetDraft& nodeset) {
  if (nodeset.mode == Mode::BulkInsert) return "not with bulk_insert";
  if (nodeset.machine_type.empty() || can_be_placed(nodeset.machine_type)) return {};
  return fmt::format("Flex Start cannot place machine type {}", nodeset.machine_type);
}

void SlurmGcp::read_placement(Block& block, NodesetDraft& nodeset) {
  const auto enabled = block.boolean("enable_placement");
  const auto distance = block.number("placement_max_distance", 3);
  const auto topology = block.text("accelerator_topology");
  const bool is_on = enabled.value.value_or(true);
  std::string why_not = is_on ? why_not_placed(nodeset) : "enable_placement is false";
  if (enabled && !is_on) out_.mapped(enabled.mark, enabled.from, nodeset.path("placement: none"));
  if (topology) {
    if (!is_topology(*topology)) why_not = "a topology is like 4x4";
    if (why_not.empty()) {
      nodeset.placement.accelerator_topology = *topology;
      out_.mapped(topology.mark,
                  topology.from,
                  nodeset.path("placement.accelerator_topology: " + *topology));
      why_not = "accelerator_topology says more";
    } else {
      out_.no_equal(topology.mark, topology.from, why_not);
    }
  }
  if (distance && *distance > 0 && why_not.empty()) {
    nodeset.placement.max_distance = static_cast<int>(*distance);
    out_.mapped(distance.mark,
                distance.from,
                nodeset.path(fmt::format("placement.max_distance: {}", *distance)));
  } else if (distance) {
    out_.no_equal(distance.mark, distance.from, why_not.empty() ? "from 1 to 3" : why_not);
  }
  if (!enabled && !nodeset.placement.is_wanted() && why_not.empty()) {
    out_.assumed(block.mark(),
                 nodeset.path("placement: none"),
                 "the toolkit places VMs unless enable_placement is false, but names no distance");
  }
  if (!enabled || !is_on) return;
  if (nodeset.placement.is_wanted()) {
    out_.mapped(enabled.mark, enabled.from, nodeset.path("placement"));
  } else {
    out_.no_equal(
        enabled.mark,
        enabled.from,
        why_not.empty() ? "placement needs a distance: add placement.max_distance" : why_not);
  }
}

void SlurmGcp::report_rest(const Block& block) {
  for (const TreeNode* key : block.rest())
    out_.no_equal(key->mark, block.path() + key->text, std::string(where_else(key->text)));
}

void SlurmGcp::read_nodeset(const Found& found) {
  Block block{source_, found.settings, found.path};
  auto said = block.text("nodeset_name");
  if (const auto other = block.text("name"); !said) said = other;
  const std::string name = only_plain(said ? *said : found.name, kLongestName);
  NodesetDraft nodeset{.name = name.empty() ? "nodeset" : name};
  if (!is_asked_for(options_, nodeset.name)) {
    out_.left_out(found.mark, "nodeset " + nodeset.name, "not asked for with --nodeset");
    return;
  }
  if (!is_rfc1035(nodeset.name)) {
    out_.problems.add(said ? said.mark : found.mark,
                      fmt::format("nodeset {} cannot be called so here", show(nodeset.name)),
                      "a letter must be first");
    return;
  }
  if (!is_flex(block, found, nodeset.name, nodeset) || refuse_others(block, nodeset.name)) return;
  if (name.empty()) {
    out_.assumed(found.mark, "nodesets.nodeset", "the nodeset has no name here: fill it in");
  } else {
    out_.mapped(said ? said.mark : found.mark,
                said ? said.from : fmt::format("id {}", found.name),
                "nodesets." + nodeset.name);
  }
  if (!read_counts(block, nodeset)) return;
  if (out_.draft.cluster.empty()) {
    nodeset.prefix = nodeset.name;
    out_.assumed(
        found.mark,
        nodeset.path(fmt::format("nodes: {}-…", nodeset.prefix)),
        "the toolkit calls its nodes CLUSTER-NODESET-N, and the cluster is not named here: "
        "give --cluster");
  } else {
    nodeset.prefix = fmt::format("{}-{}", out_.draft.cluster, nodeset.name);
  }
  read_template(block, nodeset);
  read_zones(block, nodeset);
  read_placement(block, nodeset);
  // A bare nodeset's own file has these beside its settings; they were read.
  for (const std::string_view key : {"project_id", "project", "slurm_cluster_name"})
    static_cast<void>(block.has(key));
  report_rest(block);
  out_.draft.nodesets.push_back(std::move(nodeset));
}

}  // namespace

void read_slurm_gcp(const TreeNode& root, const ImportOptions& options, Import& out) {
  SlurmGcp{options, out}.read(root);
}

}  // namespace flex
