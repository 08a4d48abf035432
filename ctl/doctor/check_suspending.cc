// SPDX-License-Identifier: GPL-2.0-or-later
// Who is never suspended: static nodes must not be, all others must.
#include "ctl/doctor/checks.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace flex::doctor {
namespace {

constexpr Release kSetsAreExcluded{24, 5, 0};

/// Why a node is never suspended, and what to do about it where it should be.
struct Reason {
  std::string what{};
  std::string fix{};
  std::string hint{};
  Place place{};
  /// "a[0-9]:4" keeps four of them: enough for a static node, and no mistake for the others.
  bool is_count = false;
};

/// The first one that is found for each node.
using Kept = std::map<NodeName, Reason>;

void keep(Kept& kept, const std::vector<NodeName>& nodes, const Reason& reason) {
  for (const NodeName& node : nodes) {
    const auto [at, is_new] = kept.try_emplace(node, reason);
    if (!is_new && at->second.is_count) at->second = reason;
  }
}

/// "a[0-1]", "a[0-9]:4,b0" in two lists: of those that are all kept, and those of a count.
struct Excluded {
  std::string all{};
  std::string counted{};
};

Excluded split_excluded(const std::string& list) {
  Excluded excluded;
  std::string item;
  bool is_count = false;
  int depth = 0;
  const auto take = [&] {
    std::string& into = is_count ? excluded.counted : excluded.all;
    if (!item.empty()) into += (into.empty() ? "" : ",") + item;
    item.clear();
    is_count = false;
  };
  for (const char c : list) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth == 0)
      take();
    else if (c == ':' && depth == 0)
      is_count = true;
    else if (!is_count)
      item += c;
  }
  take();
  return excluded;
}

std::vector<NodeName> excluded_nodes(const Facts& facts, const std::string& list) {
  // Before, a NodeSet's name is that of a node which does not exist.
  if (release_of(facts) >= kSetsAreExcluded) return listed_nodes(facts, list);
  auto nodes = expand_hostlist(list);
  return nodes ? *std::move(nodes) : std::vector<NodeName>{};
}

/// SuspendExcNodes as it should be: all static nodes, and what is not ours. One line for all
/// findings, for the last one counts. Where there are counts of nodes or NodeSets, what is there
/// stays.
std::string good_line(const Facts& facts) {
  const std::string given = facts.slurm.conf->get("SuspendExcNodes");
  std::set<NodeName> fixed;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    for (const NodeName& node : nodeset.static_nodes)
      if (facts.slurm.nodes.contains(node)) fixed.insert(node);
  const auto nodes = expand_hostlist(given);
  const bool is_plain = split_excluded(given).counted.empty() && nodes &&
                        std::all_of(nodes->begin(), nodes->end(), [&](const NodeName& node) {
                          return facts.slurm.nodes.contains(node);
                        });
  if (!is_plain) {
    for (const NodeName& node : excluded_nodes(facts, split_excluded(given).all)) fixed.erase(node);
    const std::string more = fold_hostlist({fixed.begin(), fixed.end()});
    return fmt::format("{}{}{}", given, given.empty() || more.empty() ? "" : ",", more);
  }
  for (const NodeName& node : *nodes)
    if (!is_ours(facts, node)) fixed.insert(node);
  return fold_hostlist({fixed.begin(), fixed.end()});
}

void keep_excluded(const Facts& facts, Kept& kept) {
  const Excluded excluded = split_excluded(facts.slurm.conf->get("SuspendExcNodes"));
  Reason reason{.what = "SuspendExcNodes names them",
                .fix = "name only static nodes there",
                .place = conf_place(facts, "SuspendExcNodes")};
  keep(kept, excluded_nodes(facts, excluded.all), reason);
  reason.is_count = true;
  keep(kept, excluded_nodes(facts, excluded.counted), reason);
  const std::string parts = facts.slurm.conf->get("SuspendExcParts");
  for (const ConfEntry& partition : facts.slurm.conf->partitions)
    if (has_word(parts, partition.name))
      keep(kept,
           partition_nodes(facts, partition),
           {.what = fmt::format("SuspendExcParts names partition {}", partition.name),
            .fix = fmt::format("take {} out there, and name static nodes in SuspendExcNodes",
                               partition.name),
            .place = conf_place(facts, "SuspendExcParts")});
}

/// The longest SuspendTime of a node's partitions counts, that of the cluster if they have none,
/// and where a node's own line has one (26.05) that.
void keep_endless(const Facts& facts, Kept& kept) {
  const SlurmConf& conf = *facts.slurm.conf;
  std::set<NodeName> has_own;
  for (const ConfEntry& entry : conf.nodes) {
    if (!entry.has("SuspendTime")) continue;
    const auto nodes = expand_hostlist(entry.name);
    if (!nodes) continue;
    has_own.insert(nodes->begin(), nodes->end());
    if (parse_slurm_number(entry.get("SuspendTime")).is_infinite)
      keep(kept,
           *nodes,
           {.what = "SuspendTime of their line is INFINITE",
            .fix = "write SuspendTime=300 in this line, and a line of their own for static nodes",
            .place = to_place(entry.place)});
  }
  const std::set<NodeName> has_line = has_own;
  for (const ConfEntry& partition : conf.partitions) {
    if (!partition.has("SuspendTime")) continue;
    auto nodes = partition_nodes(facts, partition);
    std::erase_if(nodes, [&](const NodeName& node) { return has_line.contains(node); });
    has_own.insert(nodes.begin(), nodes.end());
    if (parse_slurm_number(partition.get("SuspendTime")).is_infinite)
      keep(kept,
           nodes,
           {.what = fmt::format("SuspendTime of partition {} is INFINITE", partition.name),
            .fix = "write SuspendTime=300 in this line, and name static nodes in SuspendExcNodes",
            .hint = fmt::format("PartitionName={} … SuspendTime=300", partition.name),
            .place = to_place(partition.place)});
  }
  const SlurmNumber whole = parse_slurm_number(conf.get("SuspendTime"));
  if (whole.is_set && !whole.is_infinite) return;
  std::vector<NodeName> rest;
  for (const auto& [node, known] : facts.slurm.nodes)
    if (!has_own.contains(node)) rest.push_back(node);
  keep(kept,
       rest,
       {.what = whole.is_set ? "SuspendTime is INFINITE" : "SuspendTime is not set (INFINITE)",
        .fix = "write SuspendTime=300, and name static nodes in SuspendExcNodes",
        .hint = "SuspendTime=300",
        .place = conf_place(facts, "SuspendTime")});
}

void check_static(const Facts& facts, const Kept& kept, Findings& findings) {
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    std::vector<NodeName> loose;
    for (const NodeName& node : nodeset.static_nodes)
      if (!kept.contains(node) && facts.slurm.nodes.contains(node)) loose.push_back(node);
    if (loose.empty()) continue;
    Finding finding{.id = "nodes.static_suspend",
                    .what = fmt::format("nodeset {}: static nodes {} are not kept from suspending",
                                        nodeset.name,
                                        fold_hostlist(loose)),
                    .why =
                        "slurmctld ends their VMs when they are idle, and the sweeper asks for "
                        "new ones, again and again",
                    .place = conf_place(facts, "SuspendExcNodes")};
    write_setting(finding, "SuspendExcNodes", good_line(facts));
    findings.push_back(std::move(finding));
  }
}

void check_others(const Facts& facts, const Kept& kept, Findings& findings) {
  std::set<NodeName> fixed;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    fixed.insert(nodeset.static_nodes.begin(), nodeset.static_nodes.end());
  std::map<std::string, std::vector<NodeName>> idle;
  for (const auto& [node, reason] : kept)
    if (!reason.is_count && is_ours(facts, node) && facts.slurm.nodes.contains(node) &&
        !fixed.contains(node))
      idle[reason.what].push_back(node);
  const std::string good = good_line(facts);
  for (const auto& [what, nodes] : idle) {
    const Reason& reason = kept.at(nodes.front());
    Finding finding{
        .id = "nodes.never_suspended",
        .severity = Severity::Warning,
        .what = fmt::format(
            "{} are never suspended, and no static nodes: {}", fold_hostlist(nodes), what),
        .why = "their VMs stay when no job is there, and are paid for until their lease ends",
        .fix = reason.fix + "; or add them to static_nodes",
        .place = reason.place};
    if (!reason.hint.empty()) finding.hints.push_back(reason.hint);
    // Then nothing else keeps static nodes.
    if (!good.empty() && good != facts.slurm.conf->get("SuspendExcNodes"))
      finding.hints.push_back("SuspendExcNodes=" + good);
    findings.push_back(std::move(finding));
  }
}

}  // namespace

void check_suspending(const Facts& facts, Findings& findings) {
  if (!facts.slurm.conf || !facts.yaml.is_good()) return;
  // Without power saving nothing of this matters.
  if (std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.id == "slurm.suspend_time";
      }))
    return;
  Kept kept;
  keep_excluded(facts, kept);
  keep_endless(facts, kept);
  check_static(facts, kept, findings);
  check_others(facts, kept, findings);
}

}  // namespace flex::doctor
