// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/validate.h"

#include "lib/config/shapes.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace flex {

namespace {

/// "a3u-[0-3]"; the first few and a count where that would fill the screen.
std::string fold_some(const std::vector<NodeName>& nodes) {
  constexpr std::size_t kWide = 80;
  constexpr std::size_t kFew = 5;
  std::string folded = fold_hostlist(nodes);
  if (folded.size() <= kWide || nodes.size() <= kFew) return folded;
  const std::vector<NodeName> first(nodes.begin(), nodes.begin() + kFew);
  return fmt::format("{} and {} more", fold_hostlist(first), nodes.size() - kFew);
}

void check_required(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (!marks.has("nodes")) {
    problems.add(marks.self,
                 fmt::format("nodeset '{}' has no nodes", nodeset.name),
                 fmt::format("add nodes: {}-[0-3]", nodeset.name));
  }
  if (!marks.has("instance_template")) {
    problems.add(marks.self,
                 fmt::format("nodeset '{}' has no instance_template", nodeset.name),
                 "add it here or in 'defaults'");
  }
}

void check_static_nodes(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (nodeset.nodes.empty()) return;  // already reported
  const std::unordered_set<NodeName> own(nodeset.nodes.begin(), nodeset.nodes.end());
  std::vector<NodeName> strangers;
  for (const NodeName& node : nodeset.static_nodes)
    if (!own.contains(node)) strangers.push_back(node);
  if (strangers.empty()) return;
  problems.add(
      marks.at("static_nodes"),
      fmt::format("static_nodes {} not in nodeset '{}'", fold_some(strangers), nodeset.name),
      "static nodes are some of its nodes");
}

void check_reservation(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (nodeset.reservation.empty() || !nodeset.dws_flex.enabled) return;
  problems.add(marks.at("reservation"),
               "a reservation cannot be used with Flex Start",
               "remove it: Flex Start VMs never come from a reservation");
}

void check_retry(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  const RetryConfig& retry = nodeset.retry;
  if (retry.max >= retry.base) return;
  problems.add(
      marks.at(marks.has("retry.max") ? "retry.max" : "retry.base"),
      fmt::format(
          "retry.max {}s is less than retry.base {}s", retry.max.count(), retry.base.count()),
      "the delay grows from base to max");
}

/// Placement is a policy of a group, so each job needs a group of its own.
void apply_placement(Config& config, NodesetConfig& nodeset, const Marks& marks) {
  if (nodeset.placement.max_distance == 0) return;
  const auto warn = [&](Mark mark, const std::string& what) {
    std::string text = fmt::format("{}:{}:{}: {}", config.file, mark.line, mark.column, what);
    if (std::find(config.warnings.begin(), config.warnings.end(), text) == config.warnings.end())
      config.warnings.push_back(std::move(text));
  };
  warn(marks.at("placement.max_distance"), "placement is not applied by this version");
  if (nodeset.mig_scope == MigScope::Nodeset && marks.has("mig_scope"))
    warn(marks.at("mig_scope"), "mig_scope nodeset is taken as job, because of placement");
  nodeset.mig_scope = MigScope::Job;
}

void check_zone(const std::string& zone, Mark mark, const std::string& region, Problems& problems) {
  if (region_of(zone) == region) return;
  problems.add(mark,
               fmt::format("zone '{}' is not in region '{}'", zone, region),
               "one file serves one region");
}

/// The region is given, or it is that of the zones, if every nodeset has some.
void check_region(Config& config, const Sources& sources, Problems& problems) {
  // One that was given but malformed is reported already; the zones then cannot be judged.
  if (config.region.empty() && sources.top.has("region")) return;
  for (std::size_t i = 0; i < config.nodesets.size() && config.region.empty(); ++i)
    if (!config.nodesets[i].zones.empty()) config.region = region_of(config.nodesets[i].zones[0]);
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    const NodesetConfig& nodeset = config.nodesets[i];
    const Marks& marks = sources.nodesets[i];
    for (std::size_t z = 0; z < nodeset.zones.size(); ++z)
      check_zone(nodeset.zones[z], marks.at(fmt::format("zones.{}", z)), config.region, problems);
    // Zones that were all malformed are reported already.
    const bool has_no_zones = !marks.has("zones") || marks.has("zones.none");
    if (has_no_zones && !sources.top.has("region")) {
      problems.add(
          marks.at("zones.none"),
          fmt::format("nodeset '{}' has no zones and the file has no region", nodeset.name),
          "add region: us-central1 at the top level");
    }
    const std::string at = template_region(nodeset.instance_template);
    if (!at.empty() && !config.region.empty() && at != config.region) {
      problems.add(
          marks.at("instance_template"),
          fmt::format("the instance_template is in region '{}', not in '{}'", at, config.region));
    }
  }
}

/// Those of its static nodes that are its own.
void mark_static(Config& config, std::size_t index) {
  for (const NodeName& node : config.nodesets[index].static_nodes) {
    const auto place = config.places.find(node);
    if (place != config.places.end() && place->second.nodeset == index)
      place->second.is_static = true;
  }
}

/// Fills places; a node is in one nodeset.
void place_nodes(Config& config, const Sources& sources, Problems& problems) {
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    const NodesetConfig& nodeset = config.nodesets[i];
    std::map<std::size_t, std::vector<NodeName>> shared;
    for (std::size_t n = 0; n < nodeset.nodes.size(); ++n) {
      const auto [place, is_new] =
          config.places.try_emplace(nodeset.nodes[n], Config::Place{.nodeset = i, .index = n});
      if (!is_new) shared[place->second.nodeset].push_back(nodeset.nodes[n]);
    }
    mark_static(config, i);
    for (const auto& [other, nodes] : shared) {
      problems.add(sources.nodesets[i].at("nodes"),
                   fmt::format("nodesets '{}' and '{}' both have {}",
                               config.nodesets[other].name,
                               nodeset.name,
                               fold_some(nodes)),
                   "a node belongs to one nodeset");
    }
  }
}

/// The nodeset of whose jobs a group may have this name: "a" for "a-j12" and "a-j12-2". Empty:
/// none.
std::string job_group_owner(std::string_view name) {
  const auto drop_number = [](std::string_view text) {
    const std::size_t end = text.find_last_not_of("0123456789");
    return end == std::string_view::npos ? std::string_view{} : text.substr(0, end + 1);
  };
  const auto owner = [&](std::string_view text) -> std::string_view {
    const std::string_view stem = drop_number(text);
    if (stem.size() == text.size() || stem.size() < 3 || !stem.ends_with("-j")) return {};
    return stem.substr(0, stem.size() - 2);
  };
  if (const auto found = owner(name); !found.empty()) return std::string(found);
  const std::string_view stem = drop_number(name);
  if (stem.size() == name.size() || !stem.ends_with('-')) return {};
  return std::string(owner(stem.substr(0, stem.size() - 1)));
}

/// Two nodesets must never want groups of the same name: each would take the other's for its own.
void check_group_names(const Config& config, const Sources& sources, Problems& problems) {
  const std::string cluster = config.cluster.empty() ? "cluster" : config.cluster;
  std::unordered_map<MigName, std::size_t> owners;
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) by_name[config.nodesets[i].name] = i;
  const auto clash = [&](std::size_t i, std::size_t other, const std::string& group) {
    problems.add(sources.nodesets[i].self,
                 fmt::format("nodesets '{}' and '{}' would both have a group '{}'",
                             config.nodesets[other].name,
                             config.nodesets[i].name,
                             group),
                 "rename one of them");
  };
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    const NodesetConfig& nodeset = config.nodesets[i];
    const std::size_t parts =
        std::max<std::size_t>(1, (nodeset.nodes.size() + kMaxGroupSize - 1) / kMaxGroupSize);
    for (std::size_t part = 0; part < parts; ++part) {
      const MigName group = nodeset_group_name(cluster, nodeset.name, part);
      const auto [owner, is_new] = owners.try_emplace(group, i);
      if (!is_new) clash(i, owner->second, group.text);
    }
    const auto other = by_name.find(job_group_owner(nodeset.name));
    if (other != by_name.end())
      clash(i, other->second, nodeset_group_name(cluster, nodeset.name).text);
  }
}

}  // namespace

std::vector<std::string> default_repair_reasons() {
  return {"xid", "gpu", "nvlink", "nvidia", "ecc error", "dcgm"};
}

void validate(Config& config, const Sources& sources, Problems& problems) {
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    NodesetConfig& nodeset = config.nodesets[i];
    const Marks& marks = sources.nodesets[i];
    check_required(nodeset, marks, problems);
    check_static_nodes(nodeset, marks, problems);
    check_reservation(nodeset, marks, problems);
    check_retry(nodeset, marks, problems);
    apply_placement(config, nodeset, marks);
  }
  check_region(config, sources, problems);
  place_nodes(config, sources, problems);
  check_group_names(config, sources, problems);
}

}  // namespace flex
