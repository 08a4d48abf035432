// SPDX-License-Identifier: GPL-2.0-or-later
// The doctor's checks over facts: what depends on the release of Slurm, and what a real cluster
// does not show easily.
#include "ctl/doctor/checks.h"
#include "ctl/doctor/report.h"
#include "lib/slurm/hostlist.h"
#include "test/support/catch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace flex::doctor {
namespace {

constexpr const char* kYaml = R"(region: us-central1
nodesets:
  gpu:
    nodes: gpu-[0-7]
    static_nodes: gpu-0
    zones: [us-central1-a]
    instance_template: flex
)";

constexpr const char* kConf = R"(ClusterName=hpc
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

Result<std::string> no_file(const std::string& path) {
  return Error{ErrorKind::Invalid, "cannot read " + path};
}

FileFacts program(const std::string& path) {
  return {.path = path,
          .exists = true,
          .is_file = true,
          .mode = 0755,
          .real_name = path.substr(path.rfind('/') + 1)};
}

/// A good set-up but for what the texts say.
Facts facts_of(std::string conf = kConf, std::string version = "24.11.5") {
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

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// "id severity" of each, those of no weight left out.
std::string found(const Facts& facts, bool has_notes = false) {
  std::vector<std::string> texts;
  for (const Finding& finding : check_all(facts))
    if (has_notes || finding.severity != Severity::Note)
      texts.push_back(fmt::format("{} {}", finding.id, to_string(finding.severity)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

TEST_CASE("doctor: a good set-up has nothing on any release", "[ctl]") {
  const auto* const version = GENERATE(
      "22.05.8", "23.02.7", "23.11.10", "24.05.8", "24.11.5", "25.05.7", "25.11.4", "26.05.5");
  REQUIRE(facts_of().yaml.is_good());
  CHECK(found(facts_of(kConf, version)).empty());
}

TEST_CASE("doctor: releases of Slurm with mistakes", "[ctl]") {
  const auto [version, what] = GENERATE(table<std::string, std::string>({
      {"21.08.8", "slurm.version error"},
      {"22.05.0", "slurm.version error"},
      {"22.05.3", "slurm.version error"},
      {"22.05.6", "slurm.version error"},
      {"22.05.7", "slurm.version info"},
      {"23.02.4", "slurm.version warning"},
      {"23.02.5", ""},
      {"23.11.3", "slurm.version warning"},
      {"23.11.4", ""},
      {"24.05.4", "slurm.version info"},
      {"24.05.5", ""},
      {"24.11.3", "slurm.version info"},
      {"24.11.4", ""},
      {"25.05.3", "slurm.version warning"},
      {"25.05.5", "slurm.version info"},
      {"25.05.7", ""},
      {"25.11.0-0rc1", "slurm.version warning"},
      {"25.11.3", ""},
      {"26.05.0", ""},
      {"nonsense", ""},
  }));
  INFO(version);
  Facts facts;
  facts.slurm.library_version = version;
  Findings findings;
  check_version(facts, findings);
  CHECK((findings.empty()
             ? std::string()
             : fmt::format("{} {}", findings[0].id, to_string(findings[0].severity))) == what);
}

TEST_CASE("doctor: ResumeTimeout by release", "[ctl]") {
  const auto [value, version, what] = GENERATE(table<std::string, std::string, std::string>({
      {"65533", "22.05.8", ""},
      {"65533", "25.05.7", ""},
      {"INFINITE", "22.05.8", "slurm.resume_timeout warning"},
      {"INFINITE", "24.11.5", "slurm.resume_timeout warning"},
      {"65535", "24.11.5", "slurm.resume_timeout warning"},
      {"-1", "24.11.5", "slurm.resume_timeout warning"},
      {"INFINITE", "25.05.7", ""},
      {"65535", "26.05.0", ""},
      {"65534", "25.05.7", "slurm.resume_timeout error"},
      {"65536", "26.05.0", "slurm.resume_timeout error"},
      {"soon", "26.05.0", "slurm.resume_timeout error"},
      {"3600", "22.05.8", ""},
      {"3599", "22.05.8", "slurm.resume_timeout warning"},
  }));
  INFO(value << " on " << version);
  CHECK(found(facts_of(with(kConf, "ResumeTimeout=65533", "ResumeTimeout=" + value), version)) ==
        what);
  // A partition's own is looked at in the same way.
  const std::string own = with(kConf, "DefaultTime=60", "DefaultTime=60 ResumeTimeout=" + value);
  CHECK(found(facts_of(own, version)) == what);
}

TEST_CASE("doctor: what only older releases need", "[ctl]") {
  const auto [from, to, version, what] =
      GENERATE(table<std::string, std::string, std::string, std::string>({
          {"PrivateData=cloud\n", "", "22.05.8", "slurm.private_data error"},
          {"PrivateData=cloud\n", "", "23.02.7", ""},
          {"PrivateData=cloud", "PrivateData=jobs,cloud", "22.05.8", ""},
          {",cloud_reg_addrs", "", "23.02.7", "slurm.cloud_reg_addrs warning"},
          {",cloud_reg_addrs", "", "23.11.4", ""},
          {"TreeWidth=65533\n", "", "22.05.8", ""},
          {"TreeWidth=65533", "TreeWidth=7", "22.05.8", "slurm.tree_width warning"},
          {"TreeWidth=65533", "TreeWidth=7", "23.11.4", ""},
      }));
  INFO(from << " on " << version);
  CHECK(found(facts_of(with(kConf, from, to), version)) == what);
}

TEST_CASE("doctor: slurmctld's release counts, not the library's", "[ctl]") {
  Facts facts = facts_of(kConf, "24.11.5");
  facts.slurm.running = RunningConf{.version = "22.05.3"};
  CHECK(found(facts) == "slurm.version error");
}

TEST_CASE("doctor: static nodes are kept from suspending in several ways", "[ctl]") {
  const std::string line = "SuspendExcNodes=gpu-0";
  const auto [to, what] = GENERATE(table<std::string, std::string>({
      {"", "nodes.static_suspend error"},
      {"SuspendExcNodes=gpu-[1-7]", "nodes.static_suspend error"},
      {"SuspendExcNodes=other,gpu-[0-3]:2", ""},
      {"SuspendExcParts=gpu", ""},
      {"NodeSet=fixed Nodes=gpu-0\nSuspendExcNodes=fixed", ""},
      {"PartitionName=fixed Nodes=gpu-0 SuspendTime=INFINITE MaxTime=60 DefaultTime=60 "
       "OverSubscribe=EXCLUSIVE",
       ""},
  }));
  INFO(to);
  CHECK(found(facts_of(with(kConf, line, to))) == what);
}

TEST_CASE("doctor: programs", "[ctl]") {
  Facts facts = facts_of();
  FileFacts& resume = facts.slurm.programs["ResumeProgram"];
  SECTION("a link to ours is ours") {
    resume.path = "/opt/resume";
    resume.real_name = "flex-resume";
    CHECK(found(facts).empty());
  }
  SECTION("another's is told") {
    resume.path = resume.real_name = "/opt/resume.py";
    CHECK(found(facts) == "slurm.resume_program error");
  }
  SECTION("not executable") {
    resume.mode = 0644;
    CHECK(found(facts) == "slurm.resume_program error");
  }
  SECTION("slurmctld refuses what others may write") {
    resume.mode = 0775;
    CHECK(found(facts) == "slurm.resume_program error");
  }
}

TEST_CASE("doctor: what slurmctld runs with", "[ctl]") {
  Facts facts = facts_of();
  facts.slurm.was_asked = true;
  facts.slurm.running =
      RunningConf{.version = "24.11.5",
                  .values = {{"ResumeTimeout", "65533"},
                             {"SlurmctldParameters", "cloud_reg_addrs,idle_on_node_suspend"},
                             {"TreeWidth", "65533"}}};
  SECTION("words in another order are the same") {
    CHECK(found(facts).empty());
  }
  SECTION("another value is not") {
    facts.slurm.running->values["ResumeTimeout"] = "600";
    CHECK(found(facts) == "slurm.not_loaded warning");
  }
  SECTION("a key that is wrong in the file is told once") {
    facts.slurm.conf = parse_slurm_conf(
        with(kConf, "ResumeTimeout=65533", "ResumeTimeout=60"), "slurm.conf", no_file);
    CHECK(found(facts) == "slurm.resume_timeout warning");
  }
  SECTION("nodes that it does not know") {
    facts.slurm.running_nodes[NodeName{"gpu-0"}] = true;
    CHECK(found(facts) == "slurm.not_loaded warning");
  }
  SECTION("no answer") {
    facts.slurm.running.reset();
    facts.slurm.running_error = "Unable to contact slurm controller";
    CHECK(found(facts) == "slurm.unreachable error");
  }
}

TEST_CASE("doctor: a bad flex-start.yaml hides what cannot be known", "[ctl]") {
  Facts facts = facts_of();
  facts.yaml.loaded = parse_config("regoin: x\n", "flex-start.yaml");
  const Findings findings = check_all(facts);
  REQUIRE_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    CHECK(finding.id == "config.problem");
    CHECK(finding.place.file == "flex-start.yaml");
  }
  CHECK(exit_code(findings) == 2);
}

TEST_CASE("doctor: the sweeper", "[ctl]") {
  using namespace std::chrono_literals;
  Facts facts = facts_of();
  facts.now = TimePoint{1000000s};
  facts.state = {.was_looked_at = true,
                 .directory = {.path = "/s/flex-start", .exists = true, .is_directory = true}};
  const auto [beat, since, what] = GENERATE(table<int, int, std::string>({
      {-1, -1, "sweeper.not_running warning"},
      {20, -1, ""},
      {20, 3600, ""},
      {3600, -1, "sweeper.not_running error"},
      {3600, 10, "sweeper.starting info"},
      {-1, 10, "sweeper.starting info"},
      {-1, 3600, "sweeper.not_running error"},
  }));
  if (beat >= 0) facts.state.heartbeat = facts.now - Seconds{beat};
  if (since >= 0) facts.state.at_work_since = facts.now - Seconds{since};
  INFO(beat << " " << since);
  CHECK(found(facts, true) == what);
}

TEST_CASE("doctor: the clock", "[ctl]") {
  const auto [skew, what] = GENERATE(table<int, std::string>({
      {0, ""},
      {29, ""},
      {-30, "clock.skew warning"},
      {299, "clock.skew warning"},
      {300, "clock.skew error"},
      {-86400, "clock.skew error"},
  }));
  Facts facts = facts_of();
  facts.cloud.clock_skew = Seconds{skew};
  CHECK(found(facts) == what);
}

/// As if Google had answered.
void add_cloud(Facts& facts) {
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

TEST_CASE("doctor: the cloud", "[ctl]") {
  Facts facts = facts_of();
  add_cloud(facts);
  SECTION("good") {
    CHECK(found(facts).empty());
    CHECK(found(facts, true) == "iam.service_agent_unseen info");
  }
  SECTION("a preemptible quota of 0 stands for the ordinary one") {
    (*facts.cloud.region)->quotas = {{"PREEMPTIBLE_NVIDIA_H100_GPUS", 0, 0},
                                     {"NVIDIA_H100_GPUS", 100, 0}};
    CHECK(found(facts).empty());
  }
  SECTION("neither") {
    (*facts.cloud.region)->quotas = {{"PREEMPTIBLE_NVIDIA_H100_GPUS", 0, 0},
                                     {"NVIDIA_H100_GPUS", 0, 0}};
    CHECK(found(facts) == "quota.gpus error");
  }
  SECTION("a quota that the region does not list says nothing") {
    (*facts.cloud.region)->quotas = {};
    CHECK(found(facts).empty());
    CHECK(found(facts, true) == "quota.unseen info, iam.service_agent_unseen info");
  }
  SECTION("a group that was made with another template") {
    facts.cloud.groups.emplace_back(
        facts.yaml.config().nodesets.front().name,
        Group{.name = {"hpc-a"}, .instance_template = "https://x/global/instanceTemplates/old"});
    CHECK(found(facts) == "template.group warning");
    facts.cloud.groups.front().second.instance_template =
        "projects/p/global/instanceTemplates/flex";
    CHECK(found(facts).empty());
  }
  SECTION("a probe that Google took for real") {
    facts.cloud.probes.emplace_back(Probe{.permission = "compute.resourcePolicies.create"},
                                    Error{ErrorKind::Internal, "POST /x was accepted", "ACCEPTED"});
    CHECK(found(facts) == "iam.probe_accepted warning");
  }
  SECTION("a key file that only the environment names") {
    facts.cloud.environment_key = "/root/key.json";
    CHECK(found(facts) == "credentials.environment warning");
  }
  SECTION("requests") {
    (*facts.cloud.region)->quotas.push_back({"ACTIVE_RESIZE_REQUESTS", 20, 0});
    CHECK(found(facts) == "quota.requests warning");
  }
  SECTION("a permission that only the doctor needs is no reason to worry") {
    facts.cloud.region =
        Result<RegionFacts>(Error{ErrorKind::Denied, "Required 'compute.regions.get'"});
    CHECK(found(facts, true) == "iam.unseen info, iam.service_agent_unseen info");
  }
  SECTION("one that a program needs is") {
    facts.cloud.probes.emplace_back(
        Probe{.permission = "compute.instances.delete"},
        Error{ErrorKind::Denied, "Required 'compute.instances.delete' permission for 'x'"});
    CHECK(found(facts) == "iam.permission error");
  }
  SECTION("what could not be found out is not told") {
    facts.cloud.probes.emplace_back(Probe{.permission = "compute.instances.delete"},
                                    Error{ErrorKind::Retry, "503"});
    CHECK(found(facts).empty());
  }
  SECTION("the service agent, as a group sees it") {
    facts.cloud.group_errors = {
        "Required 'compute.instances.create' permission acting as "
        "42@cloudservices.gserviceaccount.com"};
    CHECK(found(facts) == "iam.service_agent error");
  }
  SECTION("the API is not enabled") {
    facts.cloud.probes.clear();
    facts.cloud.region =
        Result<RegionFacts>(Error{ErrorKind::Denied, "not used before", "accessNotConfigured"});
    CHECK(found(facts) == "api.disabled error");
  }
  SECTION("a template of another project is not looked at") {
    facts.cloud.templates.at("flex") = Error{ErrorKind::Invalid, "template 'x'", "OTHER_PROJECT"};
    CHECK(found(facts, true) == "template.unseen info, iam.service_agent_unseen info");
  }
}

TEST_CASE("doctor: the report", "[ctl]") {
  Facts facts = facts_of(with(kConf, "ResumeRate=0", "ResumeRate=9"));
  const Findings findings = check_all(facts);
  const std::string text = to_text(facts, findings, {}, true);
  CHECK(text.find("error: ResumeRate is 9 [slurm.resume_rate]\n") == 0);
  CHECK(text.find("fix: slurm.conf:6: change it to ResumeRate=0\n       ResumeRate=0\n") !=
        std::string::npos);
  CHECK(text.find("not checked: slurmctld, the sweeper and Google Cloud: --offline\n") !=
        std::string::npos);
  CHECK(text.ends_with("1 error, 0 warnings\n"));
  CHECK(to_json_text(facts, findings).find("\"id\": \"slurm.resume_rate\"") != std::string::npos);
  CHECK(to_text(facts, {}, {}, false).ends_with("nothing found\n"));
}

}  // namespace
}  // namespace flex::doctor
