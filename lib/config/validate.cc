// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/validate.h"

#include "lib/config/checks.h"
#include "lib/config/shapes.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

void check_max_nodes(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (nodeset.max_nodes == 0 || nodeset.static_nodes.size() <= nodeset.max_nodes) return;
  problems.add(marks.at("max_nodes"),
               fmt::format("max_nodes {} is less than the {} static_nodes of nodeset '{}'",
                           nodeset.max_nodes,
                           nodeset.static_nodes.size(),
                           nodeset.name),
               "static nodes are kept up all the time");
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

/// `prefix` is that of the section's keys.
void check_zones(const std::vector<std::string>& zones,
                 const Marks& marks,
                 const std::string& prefix,
                 const std::string& region,
                 Problems& problems) {
  for (std::size_t z = 0; z < zones.size(); ++z) {
    if (region_of(zones[z]) == region) continue;
    problems.add(marks.at(fmt::format("{}zones.{}", prefix, z)),
                 fmt::format("zone '{}' is not in region '{}'", zones[z], region),
                 "one file serves one region");
  }
}

void check_template(const std::string& name, Mark mark, const Config& config, Problems& problems) {
  const std::string at = template_region(name);
  if (at.empty() || config.region.empty() || at == config.region) return;
  problems.add(
      mark, fmt::format("the instance_template is in region '{}', not in '{}'", at, config.region));
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
    check_zones(nodeset.zones, marks, "", config.region, problems);
    // Zones that were all malformed are reported already.
    const bool has_no_zones = !marks.has("zones") || marks.has("zones.none");
    if (has_no_zones && !sources.top.has("region")) {
      problems.add(
          marks.at("zones.none"),
          fmt::format("nodeset '{}' has no zones and the file has no region", nodeset.name),
          "add region: us-central1 at the top level");
    }
    check_template(nodeset.instance_template, marks.at("instance_template"), config, problems);
    for (std::size_t k = 0; k < nodeset.on_stockout.size(); ++k) {
      const StockoutStep& step = nodeset.on_stockout[k];
      const std::string prefix = step_key(k, "");
      check_zones(step.zones, marks, prefix, config.region, problems);
      check_template(
          step.instance_template, marks.at(prefix + "instance_template"), config, problems);
    }
  }
}

/// Whoever reaches the port sees users, jobs and what the cluster is about to do.
void check_listen(const Config& config, const Marks& marks, Problems& problems) {
  const auto address = parse_listen(config.sweeper.listen);
  // A token file that is malformed is reported already.
  if (!address || address->is_loopback || marks.has("sweeper.listen_token_file")) return;
  problems.add(
      marks.at("sweeper.listen"),
      fmt::format("'listen' on {} can be reached from other machines", address->host),
      "add listen_token_file, the path of a file with a bearer token, or listen on 127.0.0.1");
}

/// Those of its static nodes that are its own.
void mark_static(Config& config, std::size_t index) {
  for (const NodeName& node : config.nodesets[index].static_nodes) {
    const NodePlace* const place = config.places.find(node);
    if (place != nullptr && place->nodeset == index) config.places[node].is_static = true;
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
      if (!is_new) shared[place->nodeset].push_back(nodeset.nodes[n]);
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

}  // namespace

void validate(Config& config, const Sources& sources, Problems& problems) {
  for (std::size_t i = 0; i < config.nodesets.size(); ++i) {
    NodesetConfig& nodeset = config.nodesets[i];
    const Marks& marks = sources.nodesets[i];
    check_required(nodeset, marks, problems);
    check_static_nodes(nodeset, marks, problems);
    check_reservation(nodeset, marks, problems);
    check_max_nodes(nodeset, marks, problems);
    check_retry(nodeset, marks, problems);
    check_mode(nodeset, marks, problems);
    check_placement(config, nodeset, marks, problems);
    check_race(nodeset, marks, problems);
    check_on_stockout(config, nodeset, marks, problems);
    check_run_duration(nodeset, marks, problems);
  }
  check_listen(config, sources.top, problems);
  check_region(config, sources, problems);
  place_nodes(config, sources, problems);
  check_group_names(config, sources, problems);
}

}  // namespace flex
