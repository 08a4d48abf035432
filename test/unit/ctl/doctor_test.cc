// SPDX-License-Identifier: GPL-2.0-or-later
// The doctor's checks over facts: what depends on the release of Slurm, and what a real cluster
// does not show easily.
#include "test/unit/ctl/doctor_facts.h"

namespace flex::doctor {
namespace {

TEST_CASE("doctor: a good set-up has nothing on any release", "[ctl]") {
  const auto* const version = GENERATE(
      "22.05.8", "23.02.7", "23.11.10", "24.05.8", "24.11.5", "25.05.7", "25.11.4", "26.05.5");
  REQUIRE(facts_of().yaml.is_good());
  CHECK(found(facts_of(kConf, version)).empty());
}

TEST_CASE("doctor: releases of Slurm with mistakes", "[ctl]") {
  const auto [version, what] = GENERATE(table<std::string, std::string>({
      {"21.08.8", "error 22.05.7"},
      {"22.05.0", "error 22.05.7"},
      {"22.05.6", "error 22.05.7"},
      {"22.05.7", "info 23.02.5, info 25.05.7"},
      {"22.05.8", "info 23.02.5, info 25.05.7"},
      {"23.02.4", "warning 23.02.5, info 25.05.7"},
      {"23.02.5", "info 25.05.7"},
      {"23.11.3", "warning 23.11.8, info 25.05.7"},
      {"23.11.4", "info 23.11.8, info 25.05.7"},
      {"23.11.8", "info 25.05.7"},
      {"24.05.0", "info 24.05.7, info 24.05.7, info 24.05.7, info 25.05.7"},
      {"24.05.4", "info 24.05.7, info 24.05.7, info 25.05.7"},
      {"24.05.6", "info 24.05.7, info 25.05.7"},
      {"24.05.7", "info 25.05.7"},
      {"24.11.3", "info 24.11.4, info 25.05.7"},
      {"24.11.4", "info 25.05.7"},
      {"25.05.3", "info 25.05.7, warning 25.05.7"},
      {"25.05.6", "info 25.05.7"},
      {"25.05.7", ""},
      {"25.11.0-0rc1", "warning 25.11.3, info 25.11.3"},
      {"25.11.3", ""},
      {"26.05.0", ""},
      {"nonsense", ""},
  }));
  INFO(version);
  Facts facts;
  facts.slurm.library_version = version;
  Findings findings;
  check_version(facts, findings);
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    CHECK(finding.id == "slurm.version");
    const std::string_view fix = finding.fix;
    constexpr std::string_view kBefore = "upgrade Slurm to ";
    REQUIRE(fix.starts_with(kBefore));
    const std::string_view rest = fix.substr(kBefore.size());
    texts.push_back(
        fmt::format("{} {}", to_string(finding.severity), rest.substr(0, rest.find(' '))));
  }
  CHECK(fmt::format("{}", fmt::join(texts, ", ")) == what);
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

TEST_CASE("doctor: the timeout that counts is the longest of a node's partitions", "[ctl]") {
  const std::string two = std::string(kConf) +
                          "PartitionName=all Nodes=gpu-[0-7] MaxTime=60 DefaultTime=60 "
                          "OverSubscribe=EXCLUSIVE\n";
  const auto [whole, first, second, what] =
      GENERATE(table<std::string, std::string, std::string, std::string>({
          {"ResumeTimeout=600", "ResumeTimeout=65533", "", ""},
          {"", "ResumeTimeout=65533", "", ""},
          {"ResumeTimeout=INFINITE", "ResumeTimeout=65533", "", ""},
          {"ResumeTimeout=600", "ResumeTimeout=60", "ResumeTimeout=7200", ""},
          {"ResumeTimeout=65533", "ResumeTimeout=600", "", "partition gpu: ResumeTimeout is 600 s"},
          {"ResumeTimeout=65533",
           "ResumeTimeout=60",
           "ResumeTimeout=70",
           "partition all: ResumeTimeout is 70 s"},
          {"ResumeTimeout=soon", "ResumeTimeout=65533", "", "ResumeTimeout is soon"},
          {"", "", "", "ResumeTimeout is not set (60 s)"},
          {"ResumeTimeout=600",
           "SuspendTimeout=10",
           "ResumeTimeout=65533",
           "partition gpu: SuspendTimeout is 10 s"},
      }));
  INFO(whole << ", " << first << ", " << second);
  std::string conf = with(two, "ResumeTimeout=65533", whole);
  conf = with(conf, "Nodes=gpu-[0-7] MaxTime=6-", first + " Nodes=gpu-[0-7] MaxTime=6-");
  conf = with(conf, "PartitionName=all", "PartitionName=all " + second);
  const Findings findings = check_all(facts_of(conf));
  std::vector<std::string> texts;
  for (const Finding& finding : findings) texts.push_back(finding.what);
  CHECK(fmt::format("{}", fmt::join(texts, ", ")) == what);
  if (what.starts_with("partition gpu: ResumeTimeout")) {
    CHECK(findings[0].fix == "write ResumeTimeout=INFINITE in this line");
    CHECK(findings[0].hints ==
          std::vector<std::string>{"PartitionName=gpu … ResumeTimeout=INFINITE"});
  }
}

TEST_CASE("doctor: a timeout that no node of ours has does not matter", "[ctl]") {
  std::string conf = with(kConf, "ResumeTimeout=65533", "ResumeTimeout=300");
  conf = with(conf, "DefaultTime=60", "DefaultTime=60 ResumeTimeout=65533");
  conf += "NodeName=cpu-[0-3]\nPartitionName=cpu Nodes=cpu-[0-3]\n";
  CHECK(found(facts_of(conf)).empty());
}

TEST_CASE("doctor: what only older releases need", "[ctl]") {
  const auto [from, to, version, what] =
      GENERATE(table<std::string, std::string, std::string, std::string>({
          {"PrivateData=cloud\n", "", "22.05.8", "slurm.private_data error"},
          {"PrivateData=cloud\n", "", "23.02.7", ""},
          {"PrivateData=cloud", "PrivateData=jobs,cloud", "22.05.8", ""},
          {",cloud_reg_addrs", "", "23.02.7", "slurm.cloud_reg_addrs warning"},
          {",cloud_reg_addrs", "", "23.11.4", ""},
          {"cloud_reg_addrs", "cloud_dns", "22.05.8", ""},
          {"cloud_reg_addrs\nPrivateData=cloud\nTreeWidth=65533",
           "cloud_dns\nPrivateData=cloud\nTreeWidth=7",
           "22.05.8",
           ""},
          {"TreeWidth=65533\n", "", "22.05.8", ""},
          {"TreeWidth=65533", "TreeWidth=7", "22.05.8", "slurm.tree_width warning"},
          {"TreeWidth=65533", "TreeWidth=7", "23.11.4", ""},
      }));
  INFO(from << " on " << version);
  CHECK(found(facts_of(with(kConf, from, to), version)) == what);
}

TEST_CASE("doctor: fixes of one line do not undo each other", "[ctl]") {
  SECTION("words of SlurmctldParameters") {
    const auto [from, to, line] = GENERATE(table<std::string, std::string, std::string>({
        {"SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs\n",
         "",
         "SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs"},
        {"idle_on_node_suspend,cloud_reg_addrs",
         "power_save_interval=5",
         "SlurmctldParameters=power_save_interval=5,idle_on_node_suspend,cloud_reg_addrs"},
    }));
    const Facts facts = facts_of(with(kConf, from, to), "22.05.8");
    CHECK(found(facts) == "slurm.idle_on_node_suspend error, slurm.cloud_reg_addrs warning");
    for (const Finding& finding : check_all(facts))
      if (finding.severity != Severity::Note) CHECK(finding.hints.at(0) == line);
  }
  SECTION("nodes of SuspendExcNodes") {
    const auto [given, line] = GENERATE(table<std::string, std::string>({
        {"", "SuspendExcNodes=b-1,gpu-0"},
        {"SuspendExcNodes=gpu-7", "SuspendExcNodes=b-1,gpu-0"},
        {"SuspendExcNodes=cpu-0", "SuspendExcNodes=b-1,cpu-0,gpu-0"},
        {"SuspendExcNodes=cpu-[0-1]:1", "SuspendExcNodes=cpu-[0-1]:1,b-1,gpu-0"},
    }));
    Facts facts = facts_of(with(kConf, "SuspendExcNodes=gpu-0", given));
    facts.yaml.loaded =
        parse_config(with(kYaml,
                          "nodesets:\n",
                          "nodesets:\n  b: {nodes: 'b-[0-1]', static_nodes: b-1, zones: "
                          "[us-central1-a], instance_template: flex}\n"),
                     "flex-start.yaml");
    REQUIRE(facts.yaml.is_good());
    facts.slurm.nodes[NodeName{"b-1"}] = {"CLOUD", {}};
    facts.slurm.nodes[NodeName{"cpu-0"}] = {"", {}};
    Findings findings;
    check_suspending(facts, findings);
    std::vector<std::string> hints;
    for (const Finding& finding : findings)
      if (finding.id == "nodes.static_suspend") hints.push_back(finding.hints.at(0));
    CHECK(hints == std::vector<std::string>{line, line});
  }
}

TEST_CASE("doctor: slurmctld's release counts, not the library's", "[ctl]") {
  Facts facts = facts_of(kConf, "24.11.5");
  facts.slurm.running = RunningConf{.version = "22.05.3"};
  CHECK(found(facts) == "slurm.version error");
}

TEST_CASE("doctor: static nodes are kept from suspending in several ways, and no others", "[ctl]") {
  const std::string line = "SuspendExcNodes=gpu-0";
  const std::string loose = "nodes.static_suspend error";
  const std::string idle = "nodes.never_suspended warning";
  const std::string both = loose + ", " + idle;
  const std::string part =
      "PartitionName=fixed MaxTime=60 DefaultTime=60 OverSubscribe=EXCLUSIVE SuspendTime=INFINITE ";
  const auto [to, what] = GENERATE_COPY(table<std::string, std::string>({
      {"", loose},
      {"SuspendExcNodes=gpu-[1-7]", both},
      {"SuspendExcNodes=gpu-[0-7]", idle},
      {"SuspendExcNodes=other,gpu-[0-3]:2", ""},
      {"SuspendExcNodes=other,gpu-[0-3]:2,gpu-4", idle},
      {"SuspendExcParts=gpu", idle},
      {"NodeSet=fixed Nodes=gpu-0\nSuspendExcNodes=fixed", ""},
      {part + "Nodes=gpu-0", ""},
      {part + "Nodes=gpu-[0-7]", idle},
      {"SuspendTime=INFINITE", "slurm.suspend_time error"},
  }));
  INFO(to);
  CHECK(found(facts_of(with(kConf, line, to))) == what);
}

TEST_CASE("doctor: the cluster's SuspendTime counts where partitions have none", "[ctl]") {
  // The nodes of another partition make power saving possible.
  const std::string other =
      "NodeName=cpu-[0-1]\nPartitionName=cpu Nodes=cpu-[0-1],gpu-1 SuspendTime=60 MaxTime=60 "
      "DefaultTime=60 OverSubscribe=EXCLUSIVE\n";
  const auto* const whole = GENERATE("SuspendTime=INFINITE\n", "SuspendTime=-1\n", "");
  const std::string conf = with(kConf, "SuspendTime=300\n", whole) + other;
  const Facts facts = facts_of(with(conf, "SuspendExcNodes=gpu-0\n", ""));
  const Findings findings = check_all(facts);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].id == "nodes.never_suspended");
  CHECK(findings[0].what.starts_with("gpu-[2-7] are never suspended"));
  CHECK(findings[0].hints == std::vector<std::string>{"SuspendTime=300", "SuspendExcNodes=gpu-0"});
}

TEST_CASE("doctor: before 24.05 SuspendExcNodes knows no NodeSet", "[ctl]") {
  const std::string conf =
      with(kConf, "SuspendExcNodes=gpu-0", "NodeSet=fixed Nodes=gpu-0\nSuspendExcNodes=fixed");
  CHECK(found(facts_of(conf, "23.11.10")) == "nodes.static_suspend error");
  CHECK(found(facts_of(conf, "24.05.8")).empty());
}

TEST_CASE("doctor: a NodeSet has the nodes of its list and of its feature", "[ctl]") {
  const std::string nodes = "NodeName=gpu-[0-7] ";
  const auto [features, set] = GENERATE(table<std::string, std::string>({
      {"Features=a100,gpu", "Feature=gpu"},
      {"Feature=gpu", "Feature=gpu"},
      {"Feature=gpu", "Feature=gpu Nodes=gpu-[0-3]"},
      {"", "Nodes=gpu-[0-7]"},
  }));
  INFO(features << " " << set);
  std::string conf = with(kConf, nodes, "NodeSet=mine " + set + "\n" + nodes + features + " ");
  conf = with(conf, "Nodes=gpu-[0-7] MaxTime", "Nodes=mine MaxTime");
  CHECK(found(facts_of(conf)).empty());
  // All of its checks are made.
  conf = with(conf, "MaxTime=6-23:45:00", "MaxTime=30-0");
  CHECK(found(facts_of(conf)) == "partition.max_time warning");
  conf = with(conf, set + "\n", "Feature=other\n");
  CHECK(found(facts_of(conf)) == "partition.none warning");
}

TEST_CASE("doctor: a margin that leaves nothing of a VM's life", "[ctl]") {
  Facts facts = facts_of(with(kConf, "MaxTime=6-23:45:00", "MaxTime=UNLIMITED"));
  facts.yaml.loaded = parse_config(std::string(kYaml) +
                                       "    dws_flex: {max_run_duration: 10m}\n"
                                       "    run_duration_margin: 15m\n",
                                   "flex-start.yaml");
  REQUIRE(facts.yaml.is_good());
  const Findings findings = check_all(facts);
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].id == "partition.max_time");
  CHECK(findings[0].fix == "write MaxTime=00:01:00 in this line");
  CHECK(findings[1].id == "partition.margin");
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
  SECTION("an old release must not be told so while nodes are being started") {
    facts.slurm.running->values["ResumeTimeout"] = "600";
    CHECK(check_all(facts).back().fix == "run scontrol reconfigure");
    facts.slurm.running->version = "23.02.4";
    CHECK(check_all(facts).back().fix == "run scontrol reconfigure, when no node is powering up");
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
