// SPDX-License-Identifier: GPL-2.0-or-later
// What several checks use.
#include "ctl/doctor/checks.h"
#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace flex::doctor {
namespace {

/// A number at the beginning of the text, which then begins behind it.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool is_infinite(std::string_view text) {
  const std::string word = lower_case(text);
  return word == "infinite" || word == "unlimited" || word == "-1";
}

std::vector<NodeName> all_nodes(const Facts& facts) {
  std::vector<NodeName> nodes;
  for (const auto& [name, node] : facts.slurm.nodes) nodes.push_back(name);
  return nodes;
}

/// "NodeSet=x Nodes=a[0-3] Feature=gpu": those named, and those with the feature.
std::vector<NodeName> members_of(const Facts& facts, const ConfEntry& set) {
  const std::string named = set.get("Nodes");
  if (has_word(named, "ALL")) return all_nodes(facts);
  std::vector<NodeName> nodes;
  if (auto expanded = expand_hostlist(named)) nodes = *std::move(expanded);
  const std::string feature = set.get("Feature");
  if (feature.empty()) return nodes;
  for (const ConfEntry& entry : facts.slurm.conf->nodes) {
    if (!has_word(entry.get("Features"), feature) && !has_word(entry.get("Feature"), feature))
      continue;
    if (const auto more = expand_hostlist(entry.name))
      nodes.insert(nodes.end(), more->begin(), more->end());
  }
  return nodes;
}

}  // namespace

std::optional<Release> parse_release(std::string_view text) {
  Release release;
  const auto year = take_number(text);
  if (!year || text.empty() || text[0] != '.') return std::nullopt;
  text.remove_prefix(1);
  const auto month = take_number(text);
  if (!month) return std::nullopt;
  release.year = *year;
  release.month = *month;
  if (text.empty() || text[0] != '.') return release;
  text.remove_prefix(1);
  release.patch = take_number(text).value_or(0);
  return release;
}

Release release_of(const Facts& facts) {
  return parse_release(facts.slurm.version()).value_or(Release{99, 0, 0});
}

SlurmNumber parse_slurm_number(std::string_view text) {
  SlurmNumber number{.is_set = !text.empty()};
  if (!number.is_set) return number;
  number.is_infinite = is_infinite(text);
  if (number.is_infinite) return number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  number.is_good = error == std::errc{} && end == text.data() + text.size() && number.value >= 0;
  return number;
}

SlurmNumber parse_slurm_time(std::string_view text) {
  SlurmNumber number{.is_set = !text.empty()};
  if (!number.is_set) return number;
  number.is_infinite = is_infinite(text);
  if (number.is_infinite) return number;
  const auto time = parse_job_time(text);
  number.is_good = time.has_value();
  if (time) number.value = time->count();
  return number;
}

Place to_place(const ConfPlace& place) {
  return {.file = place.file, .line = place.line};
}

Place conf_place(const Facts& facts, std::string_view key) {
  if (!facts.slurm.conf) return {.file = facts.slurm.file};
  return to_place(facts.slurm.conf->place_of(key));
}

Place yaml_place(const Facts& facts, const std::string& key) {
  return {.file = facts.yaml.file, .line = facts.yaml.line_of(key)};
}

void write_setting(Finding& finding, std::string_view key, std::string_view value) {
  finding.fix = fmt::format(
      "{} {}={}", finding.place.line == 0 ? "add the line" : "change it to", key, value);
  finding.hints.push_back(fmt::format("{}={}", key, value));
}

bool is_ours(const Facts& facts, const NodeName& node) {
  return facts.yaml.is_good() && facts.yaml.config().find(node) != nullptr;
}

std::vector<NodeName> listed_nodes(const Facts& facts, const std::string& list) {
  std::vector<NodeName> nodes;
  if (!facts.slurm.conf) return nodes;
  if (has_word(list, "ALL")) return all_nodes(facts);
  const auto expanded = expand_hostlist(list);
  if (!expanded) return nodes;
  const auto& sets = facts.slurm.conf->nodesets;
  for (const NodeName& name : *expanded) {
    const auto set = std::find_if(
        sets.begin(), sets.end(), [&](const ConfEntry& entry) { return entry.name == name.text; });
    if (set == sets.end()) {
      nodes.push_back(name);
      continue;
    }
    const auto members = members_of(facts, *set);
    nodes.insert(nodes.end(), members.begin(), members.end());
  }
  return nodes;
}

std::vector<NodeName> partition_nodes(const Facts& facts, const ConfEntry& partition) {
  return listed_nodes(facts, partition.get("Nodes"));
}

Findings check_all(const Facts& facts) {
  Findings findings;
  for (const auto check :
       {check_config,      check_config_file, check_slurm_conf, check_version,     check_programs,
        check_timeouts,    check_nodes,       check_suspending, check_partitions,  check_plugin,
        check_running,     check_state,       check_unit,       check_credentials, check_clock,
        check_region,      check_templates,   check_machines,   check_quotas,      check_groups,
        check_permissions, check_answers})
    check(facts, findings);
  return findings;
}

}  // namespace flex::doctor
