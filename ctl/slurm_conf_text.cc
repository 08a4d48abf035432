// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/slurm_conf_text.h"

#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace flex {

namespace {

constexpr SlurmRelease kShowsCloudNodes{23, 2};
constexpr SlurmRelease kKnowsAddresses{23, 11};
constexpr SlurmRelease kKnowsInfinite{25, 5};

using Lines = std::vector<std::string>;

void add_programs(Lines& lines, const SlurmConfInput& input) {
  lines.emplace_back(
      "# Who brings nodes up and down, and who clears up after a node that never came.");
  lines.push_back(fmt::format("ResumeProgram={}/flex-resume", input.sbindir));
  lines.push_back(fmt::format("SuspendProgram={}/flex-suspend", input.sbindir));
  lines.push_back(fmt::format("ResumeFailProgram={}/flex-resume-fail", input.sbindir));
  lines.emplace_back(
      "# 0: no limit. A rate splits a job's nodes over several calls, and so over several "
      "all-or-nothing requests.");
  lines.emplace_back("ResumeRate=0");
  lines.emplace_back("SuspendRate=0");
}

void add_timeouts(Lines& lines, const SlurmConfInput& input) {
  if (input.release >= kKnowsInfinite) {
    lines.emplace_back(
        "# A job may wait in Google's queue for days; how long is provision_timeout's "
        "matter.");
    lines.emplace_back("ResumeTimeout=INFINITE");
  } else {
    lines.push_back(
        fmt::format("# The most that Slurm {} knows (18 h; INFINITE from 25.05 on). "
                    "flex-sweeper winds this clock up while a job waits.",
                    to_string(input.release)));
    lines.emplace_back("ResumeTimeout=65533");
  }
  lines.emplace_back("# A VM's name must be free again before its node is given to the next job.");
  lines.emplace_back("SuspendTimeout=120");
  lines.emplace_back("# So many seconds a node is idle before its VM is given back.");
  lines.emplace_back("SuspendTime=300");
}

void add_static_nodes(Lines& lines, const Config& config) {
  std::vector<NodeName> nodes;
  for (const NodesetConfig& set : config.nodesets)
    nodes.insert(nodes.end(), set.static_nodes.begin(), set.static_nodes.end());
  if (nodes.empty()) return;
  lines.emplace_back("# static_nodes: flex-sweeper keeps them up, so Slurm must not suspend them.");
  lines.push_back("SuspendExcNodes=" + fold_hostlist(nodes));
}

void add_manners(Lines& lines, const SlurmConfInput& input) {
  lines.emplace_back("# A node that was lost comes back by itself when its next VM registers.");
  lines.emplace_back("ReturnToService=2");
  lines.emplace_back(
      "# idle_on_node_suspend: a node that failed is idle again once it is powered down.");
  std::string parameters = "idle_on_node_suspend";
  if (input.release < kKnowsAddresses) {
    lines.emplace_back(
        "# cloud_reg_addrs: a VM's address is the one it registers from (default from 23.11 "
        "on).");
    parameters += ",cloud_reg_addrs";
  }
  lines.push_back("SlurmctldParameters=" + parameters);
  if (input.release < kShowsCloudNodes) {
    lines.emplace_back(
        "# Before 23.02 powered-down cloud nodes are hidden without it, also from "
        "flex-sweeper.");
    lines.emplace_back("PrivateData=cloud");
  }
  if (input.release < kKnowsAddresses) {
    lines.emplace_back(
        "# Before 23.11 nodes do not know each other's addresses: slurmctld speaks to each "
        "of them itself.");
    lines.emplace_back("TreeWidth=65533");
  }
}

/// What is known of a node's size, each with a space in front.
std::string size_text(const NodesetConfig& set) {
  const MachineSize size = size_of_machine(set.machine_type);
  std::string text;
  if (size.cpus) text += fmt::format(" CPUs={}", *size.cpus);
  if (size.gpus) text += fmt::format(" Gres=gpu:{}", *size.gpus);
  return text;
}

void add_nodeset(Lines& lines, const NodesetConfig& set) {
  lines.emplace_back();
  lines.push_back(
      fmt::format("# Nodeset {}. Add what 'slurmd -C' prints on one of its VMs ({}CPUs, "
                  "RealMemory, Gres).",
                  set.name,
                  set.machine_type.empty() ? "" : set.machine_type + ": "));
  lines.push_back(
      fmt::format("NodeName={}{} State=CLOUD", fold_hostlist(set.nodes), size_text(set)));
  const Seconds longest = set.dws_flex.max_run_duration;
  const Seconds usable = longest - std::min(set.run_duration_margin, longest);
  constexpr Seconds kDefaultTime{3600};
  // Slurm counts minutes.
  constexpr Seconds kMinute{60};
  const Seconds most = std::max(usable, kMinute);
  lines.push_back(fmt::format(
      "# MaxTime: its VMs live for max_run_duration {}, of which run_duration_margin {} is not the "
      "job's. EXCLUSIVE: one VM life per job.",
      format_slurm_time(longest),
      format_slurm_time(set.run_duration_margin)));
  lines.push_back(
      fmt::format("PartitionName={} Nodes={} MaxTime={} DefaultTime={} "
                  "OverSubscribe=EXCLUSIVE State=UP",
                  set.name,
                  fold_hostlist(set.nodes),
                  format_slurm_time(most),
                  format_slurm_time(std::min(kDefaultTime, most))));
}

}  // namespace

MachineSize size_of_machine(const std::string& machine_type) {
  std::string_view text = machine_type;
  // n2-custom-8-16384, n2-custom-8-16384-ext: CPUs, then memory.
  constexpr std::string_view kCustom = "custom-";
  if (const std::size_t custom = text.find(kCustom); custom != std::string_view::npos) {
    text.remove_prefix(custom + kCustom.size() - 1);
    text = text.substr(0, text.find('-', 1));
  }
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return {};
  const char* const end = text.data() + text.size();
  int number = 0;
  const auto [at, error] = std::from_chars(text.data() + dash + 1, end, number);
  if (error != std::errc{} || number < 1) return {};
  if (at == end) return {.cpus = number, .gpus = {}};
  if (std::string_view(at, end) == "g") return {.cpus = {}, .gpus = number};
  return {};
}

std::vector<std::string> slurm_conf_lines(const SlurmConfInput& input) {
  const Config& config = input.config;
  Lines lines = {
      fmt::format("# slurm.conf for {}, Slurm {}: made by flexctl slurm-conf.",
                  config.file,
                  to_string(input.release)),
      "# Where yours has one of these keys, this line takes its place; to SlurmctldParameters and",
      "# PrivateData add the words.",
      ""};
  add_programs(lines, input);
  add_timeouts(lines, input);
  add_static_nodes(lines, config);
  add_manners(lines, input);
  const bool has_gpus =
      std::any_of(config.nodesets.begin(), config.nodesets.end(), [](const NodesetConfig& set) {
        return size_of_machine(set.machine_type).gpus.has_value();
      });
  if (has_gpus) {
    lines.emplace_back("# And in gres.conf on the VMs: AutoDetect=nvml");
    lines.emplace_back("GresTypes=gpu");
  }
  for (const NodesetConfig& set : config.nodesets) add_nodeset(lines, set);
  return lines;
}

std::vector<std::string> plugstack_lines(const SlurmConfInput& input) {
  return {
      "# plugstack.conf, beside slurm.conf on all nodes and wherever jobs are submitted: the "
      "--flex options",
      "# of sbatch, salloc and srun, and the end of its VMs for a job. optional: jobs run even if "
      "the file is missing.",
      "optional " + input.plugin};
}

}  // namespace flex
