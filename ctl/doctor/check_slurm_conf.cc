// SPDX-License-Identifier: GPL-2.0-or-later
// slurm.conf: the file itself, and settings of the whole cluster.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

namespace flex::doctor {
namespace {

constexpr Release kRegAddrsIsDefault{23, 11, 0};
constexpr Release kCloudNodesAreShown{23, 2, 0};

struct Cluster {
  const Facts& facts;
  const SlurmConf& conf;
  Release release;
  Findings& findings;

  /// A finding about a key, with the value that it should have.
  Finding& expect(std::string id, std::string_view key, std::string_view value) const {
    Finding finding{.id = std::move(id), .place = conf_place(facts, key)};
    write_setting(finding, key, value);
    findings.push_back(std::move(finding));
    return findings.back();
  }
};

std::string shown(const SlurmConf& conf, std::string_view key, std::string_view otherwise) {
  const std::string value = conf.get(key);
  return value.empty() ? fmt::format("{} is not set ({})", key, otherwise)
                       : fmt::format("{} is {}", key, value);
}

/// Where names of nodes lead to their addresses by DNS, nobody has to be told.
bool has_cloud_dns(const Cluster& cluster) {
  return has_word(cluster.conf.get("SlurmctldParameters"), "cloud_dns");
}

/// There is one such line, and the last one counts: each finding names all the words that it lacks.
void check_parameters(const Cluster& cluster) {
  constexpr std::string_view kKey = "SlurmctldParameters";
  std::string line = cluster.conf.get(kKey);
  const auto lacks = [&line, given = line](std::string_view word) {
    if (has_word(given, word)) return false;
    line += fmt::format("{}{}", line.empty() ? "" : ",", word);
    return true;
  };
  const bool lacks_idle = lacks("idle_on_node_suspend");
  const bool lacks_addrs =
      cluster.release < kRegAddrsIsDefault && !has_cloud_dns(cluster) && lacks("cloud_reg_addrs");
  if (lacks_idle) {
    Finding& finding = cluster.expect("slurm.idle_on_node_suspend", kKey, line);
    finding.what = "SlurmctldParameters lacks idle_on_node_suspend";
    finding.why =
        "a node whose VM failed or was drained stays DOWN after it was suspended, and no job gets "
        "it again";
  }
  if (lacks_addrs) {
    Finding& finding = cluster.expect("slurm.cloud_reg_addrs", kKey, line);
    finding.severity = Severity::Warning;
    finding.what = "SlurmctldParameters lacks cloud_reg_addrs";
    finding.why =
        "before Slurm 23.11 slurmctld then reaches a VM by its name only, and so only where DNS "
        "knows it at once";
  }
}

/// Every node must be told directly: a cloud node does not know the others' addresses.
void check_tree_width(const Cluster& cluster) {
  constexpr std::int64_t kDefault = 50;
  if (cluster.release >= kRegAddrsIsDefault || has_cloud_dns(cluster)) return;
  const SlurmNumber width = parse_slurm_number(cluster.conf.get("TreeWidth"));
  const auto nodes = static_cast<std::int64_t>(cluster.facts.slurm.nodes.size());
  if (width.is_infinite || (width.is_set ? width.value : kDefault) >= nodes) return;
  Finding& finding = cluster.expect("slurm.tree_width", "TreeWidth", "65533");
  finding.severity = Severity::Warning;
  finding.what = fmt::format("{}, for {} nodes", shown(cluster.conf, "TreeWidth", "50"), nodes);
  finding.why =
      "before Slurm 23.11 cloud nodes pass messages on to nodes whose addresses they do not know: "
      "jobs on many nodes hang";
}

void check_words(const Cluster& cluster) {
  if (cluster.conf.get("ReturnToService") != "2") {
    Finding& finding = cluster.expect("slurm.return_to_service", "ReturnToService", "2");
    finding.severity = Severity::Warning;
    finding.what = shown(cluster.conf, "ReturnToService", "0");
    finding.why =
        "a VM that registers late, or again, leaves its node DOWN until somebody resumes it by "
        "hand";
  }
  if (cluster.release >= kCloudNodesAreShown) return;
  const std::string given = cluster.conf.get("PrivateData");
  if (has_word(given, "cloud")) return;
  Finding& finding = cluster.expect(
      "slurm.private_data", "PrivateData", given.empty() ? "cloud" : given + ",cloud");
  finding.what = "PrivateData lacks cloud";
  finding.why =
      "Slurm 22.05 hides nodes that are powered down from everybody: the sweeper takes the set-up "
      "for incomplete, and static nodes never start";
}

}  // namespace

void check_slurm_conf(const Facts& facts, Findings& findings) {
  const SlurmFacts& slurm = facts.slurm;
  if (!slurm.conf) {
    findings.push_back({.id = "slurm.conf",
                        .what = slurm.conf_error,
                        .why = "every program reads it to find slurmctld",
                        .fix = "set SLURM_CONF to its path, and run as SlurmUser",
                        .place = {.file = slurm.file},
                        .hints = {"SLURM_CONF=/etc/slurm/slurm.conf flexctl doctor"}});
    return;
  }
  for (const auto* list : {&slurm.conf->problems, &slurm.bad_lists})
    for (const ConfProblem& problem : *list)
      findings.push_back({.id = "slurm.conf_line",
                          .what = problem.what,
                          .why = "slurmctld does not start, or goes without that line",
                          .fix = "correct the line; see slurm.conf(5)",
                          .place = to_place(problem.place)});
  if (!slurm.slurm_user && !slurm.slurm_user_name.empty())
    findings.push_back(
        {.id = "slurm.user",
         .what = fmt::format("there is no user '{}'", slurm.slurm_user_name),
         .why = "slurmctld and all programs of slurm-flex-start run as SlurmUser",
         .fix = "name a user that exists in SlurmUser, or add it",
         .place = conf_place(facts, "SlurmUser"),
         .hints = {"SlurmUser=slurm", "useradd --system --shell /usr/sbin/nologin slurm"}});
  const Cluster cluster{facts, *slurm.conf, release_of(facts), findings};
  check_parameters(cluster);
  check_tree_width(cluster);
  check_words(cluster);
}

}  // namespace flex::doctor
