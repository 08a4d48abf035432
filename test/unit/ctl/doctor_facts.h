// SPDX-License-Identifier: GPL-2.0-or-later
// Facts of a good set-up, for the tests of the doctor's checks.
#pragma once

#include "ctl/doctor/checks.h"
#include "ctl/doctor/report.h"
#include "lib/slurm/hostlist.h"
#include "test/support/catch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flex::doctor {

inline constexpr const char* kYaml = R"(region: us-central1
nodesets:
  gpu:
    nodes: gpu-[0-7]
    static_nodes: gpu-0
    zones: [us-central1-a]
    instance_template: flex
)";

inline constexpr const char* kConf = R"(ClusterName=hpc
SlurmUser=root
ResumeProgram=/usr/sbin/flex-resume
SuspendProgram=/usr/sbin/flex-suspend
ResumeFailProgram=/usr/sbin/flex-resume-fail
ResumeRate=0
SuspendRate=0
ResumeTimeout=65533
SuspendTime=300
SuspendTimeout=120
SuspendExcNodes=gpu-0
ReturnToService=2
SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs
PrivateData=cloud
TreeWidth=65533
NodeName=gpu-[0-7] State=CLOUD
PartitionName=gpu Nodes=gpu-[0-7] MaxTime=6-23:45:00 DefaultTime=60 OverSubscribe=EXCLUSIVE
)";

inline Result<std::string> no_file(const std::string& path) {
  return Error{ErrorKind::Invalid, "cannot read " + path};
}

inline FileFacts program(const std::string& path) {
  return {.path = path,
          .exists = true,
          .is_file = true,
          .mode = 0755,
          .real_name = path.substr(path.rfind('/') + 1)};
}

/// A good set-up but for what the texts say.
inline Facts facts_of(std::string conf = kConf, std::string version = "25.05.7") {
  Facts facts{.is_offline = true};
  facts.yaml = {.file = "flex-start.yaml", .loaded = parse_config(kYaml, "flex-start.yaml")};
  SlurmFacts& slurm = facts.slurm;
  slurm.file = "slurm.conf";
  slurm.library_version = std::move(version);
  slurm.conf = parse_slurm_conf(conf, "slurm.conf", no_file);
  slurm.slurm_user = 0;
  slurm.slurm_user_name = "root";
  for (const ConfEntry& entry : slurm.conf->nodes) {
    const auto names = expand_hostlist(entry.name);
    for (const NodeName& name : *names) slurm.nodes[name] = {entry.get("State"), entry.place};
  }
  for (const char* key : {"ResumeProgram", "SuspendProgram", "ResumeFailProgram"})
    if (!slurm.conf->get(key).empty()) slurm.programs[key] = program(slurm.conf->get(key));
  slurm.plugin = {.file = "plugstack.conf", .has_file = true, .line = 1};
  return facts;
}

inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// "id severity" of each, those of no weight left out.
inline std::string found(const Facts& facts, bool has_notes = false) {
  std::vector<std::string> texts;
  for (const Finding& finding : check_all(facts))
    if (has_notes || finding.severity != Severity::Note)
      texts.push_back(fmt::format("{} {}", finding.id, to_string(finding.severity)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// As if Google had answered.
inline void add_cloud(Facts& facts) {
  facts.is_offline = false;
  CloudLook& cloud = facts.cloud;
  cloud.was_asked = true;
  cloud.token = Result<Done>(Done{});
  cloud.region =
      Result<RegionFacts>(RegionFacts{.name = "us-central1",
                                      .status = "UP",
                                      .zones = {"us-central1-a"},
                                      .quotas = {{"PREEMPTIBLE_NVIDIA_H100_GPUS", 64, 0}}});
  cloud.project = Result<ProjectFacts>(ProjectFacts{"p", "42"});
  cloud.zones.emplace("us-central1-a", ZoneFacts{"us-central1-a", "us-central1", "UP"});
  cloud.templates.emplace("flex",
                          TemplateFacts{.name = "flex",
                                        .machine_type = "a3-highgpu-8g",
                                        .provisioning_model = "FLEX_START",
                                        .termination_action = "DELETE",
                                        .on_host_maintenance = "TERMINATE",
                                        .reservation = "NO_RESERVATION",
                                        .max_run_duration = kMaxRunDuration});
  cloud.machine_types.emplace(
      std::pair{"us-central1-a", "a3-highgpu-8g"},
      MachineTypeFacts{
          .name = "a3-highgpu-8g", .cpus = 208, .accelerators = {{"nvidia-h100-80gb", 8}}});
  cloud.probes.emplace_back(Probe{.permission = "compute.instances.delete"}, Done{});
}

}  // namespace flex::doctor
