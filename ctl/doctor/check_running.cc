// SPDX-License-Identifier: GPL-2.0-or-later
// slurmctld: whether it answers, and whether it runs with what is in the file.
#include "ctl/doctor/checks.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace flex::doctor {
namespace {

/// 0 and "", 65535 and INFINITE are the same, and so are words in another order.
std::set<std::string> normal(const std::string& text) {
  std::set<std::string> words;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string word = lower_case(rest.substr(0, end));
    const bool is_infinite = word == "infinite" || word == "unlimited" || word == "-1" ||
                             word == "65535" || word == "4294967295";
    if (!word.empty()) words.insert(is_infinite ? "infinite" : word);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words;
}

/// Whether one of the findings is about this line of slurm.conf already.
bool is_told(const Findings& findings, const Place& place, std::string_view key) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    const bool is_there =
        place.line != 0 && finding.place.file == place.file && finding.place.line == place.line;
    const std::string start = fmt::format("{}=", key);
    const bool is_key = std::any_of(finding.hints.begin(),
                                    finding.hints.end(),
                                    [&](const auto& hint) { return hint.starts_with(start); });
    return finding.severity != Severity::Note && (is_there || is_key);
  });
}

std::vector<std::string> differing_keys(const Facts& facts, const Findings& findings) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : facts.slurm.running->values) {
    const ConfSetting* const setting = facts.slurm.conf->find(key);
    // What the file does not say is a default, whose spelling only Slurm knows.
    if (setting == nullptr || is_told(findings, to_place(setting->place), key)) continue;
    if (normal(setting->value) != normal(value)) keys.push_back(key);
  }
  return keys;
}

/// Nodes of nodesets that slurm.conf has and slurmctld has not.
std::vector<NodeName> unknown_nodes(const Facts& facts) {
  std::vector<NodeName> unknown;
  if (!facts.yaml.is_good() || facts.slurm.running_nodes.empty()) return unknown;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
    for (const NodeName& node : nodeset.nodes)
      if (facts.slurm.nodes.contains(node) && !facts.slurm.running_nodes.contains(node))
        unknown.push_back(node);
  return unknown;
}

void check_loaded(const Facts& facts, Findings& findings) {
  const std::vector<std::string> keys = differing_keys(facts, findings);
  const bool hides_nodes = std::any_of(findings.begin(), findings.end(), [](const Finding& found) {
    return found.id == "slurm.private_data";
  });
  const std::vector<NodeName> nodes = hides_nodes ? std::vector<NodeName>{} : unknown_nodes(facts);
  if (keys.empty() && nodes.empty()) return;
  std::vector<std::string> texts;
  for (const std::string& key : keys)
    texts.push_back(fmt::format("{} is {} there and {} in the file",
                                key,
                                facts.slurm.running->values.at(key).empty()
                                    ? "not set"
                                    : facts.slurm.running->values.at(key),
                                facts.slurm.conf->get(key)));
  if (!nodes.empty()) texts.push_back(fmt::format("it does not know {}", fold_hostlist(nodes)));
  // Before, nodes that are being started, and whose names do not resolve, become FUTURE by it.
  constexpr Release kIsSafe{23, 2, 5};
  findings.push_back(
      {.id = "slurm.not_loaded",
       .severity = Severity::Warning,
       .what = fmt::format("slurmctld runs with another slurm.conf: {}", fmt::join(texts, "; ")),
       .why = "what was changed in the file has no effect yet",
       .fix = fmt::format("{}{}",
                          nodes.empty() ? "run scontrol reconfigure" : "restart slurmctld",
                          release_of(facts) < kIsSafe ? ", when no node is powering up" : ""),
       .place = {.file = facts.slurm.file},
       .hints = {nodes.empty() ? "scontrol reconfigure" : "systemctl restart slurmctld"}});
}

/// The sweeper cures them within two rounds: what is left needs a hand, or the sweeper is not
/// there.
void check_unusable(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good()) return;
  std::vector<NodeName> nodes;
  for (const NodeName& node : facts.slurm.unusable)
    if (facts.yaml.config().find(node) != nullptr) nodes.push_back(node);
  if (nodes.empty()) return;
  const std::string list = fold_hostlist(nodes);
  findings.push_back(
      {.id = "nodes.unusable",
       .severity = Severity::Warning,
       .what = fmt::format("{}: undrained or resumed while powered down (state "
                           "IDLE+POWERED_DOWN+NOT_RESPONDING)",
                           list),
       .why = "slurmctld waits for an answer of theirs, and after its next restart no job gets "
              "them (ReqNodeNotAvail)",
       .fix = "power them down once more; flex-sweeper does so, if it runs, within two rounds",
       .hints = {fmt::format("scontrol update NodeName={} State=POWER_DOWN_FORCE", list)}});
}

}  // namespace

void check_running(const Facts& facts, Findings& findings) {
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.conf) return;
  if (!slurm.refused.empty()) {
    // Where a line is known to be wrong, Slurm's own words say the same again.
    const bool is_told_already =
        std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
          if (finding.id == "slurm.conf_line") return true;
          return std::any_of(
              finding.hints.begin(), finding.hints.end(), [&](const std::string& hint) {
                const std::string key = hint.substr(0, hint.find('='));
                return key.size() < hint.size() && slurm.refused.find(key) != std::string::npos;
              });
        });
    if (!is_told_already)
      findings.push_back({.id = "slurm.conf_refused",
                          .what = fmt::format("Slurm does not take slurm.conf: {}", slurm.refused),
                          .why = "neither slurmctld nor any of our programs starts with it",
                          .fix = "correct it; see slurm.conf(5)",
                          .place = {.file = slurm.file}});
    return;
  }
  if (!slurm.was_asked) return;
  if (!slurm.running) {
    findings.push_back({.id = "slurm.unreachable",
                        .what = fmt::format("slurmctld does not answer: {}", slurm.running_error),
                        .why = "nothing works without it; what it runs with could not be compared "
                               "with slurm.conf",
                        .fix = "start slurmctld, or look at its log; --offline goes without it",
                        .hints = {"systemctl status slurmctld", "scontrol ping"}});
    return;
  }
  check_loaded(facts, findings);
  check_unusable(facts, findings);
}

}  // namespace flex::doctor
