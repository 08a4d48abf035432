// SPDX-License-Identifier: GPL-2.0-or-later
// The lines of slurm.conf that a config needs.
#include "ctl/slurm_conf_text.h"
#include "test/support/builders.h"
#include "test/support/catch.h"

#include <algorithm>

using namespace flex;
using namespace flex::test;

namespace {

std::vector<std::string> lines_for(const Config& config, SlurmRelease release) {
  return slurm_conf_lines(
      {.config = config, .release = release, .sbindir = "/usr/sbin", .plugin = "/p/x.so"});
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

Config two_nodesets() {
  Config made = config({nodeset("a", nodes("a", 4)), nodeset("b", nodes("b", 2))});
  made.nodesets[0].static_nodes = {{"a-0"}, {"a-1"}};
  made.nodesets[0].machine_type = "a3-ultragpu-8g";
  made.nodesets[1].machine_type = "n2-standard-8";
  made.nodesets[1].dws_flex.max_run_duration = std::chrono::hours{2};
  return made;
}

}  // namespace

TEST_CASE("slurm-conf: nodes, partitions and static nodes are the config's", "[ctl]") {
  const auto lines = lines_for(two_nodesets(), {22, 5});
  CHECK(has(lines, "ResumeProgram=/usr/sbin/flex-resume"));
  CHECK(has(lines, "SuspendExcNodes=a-[0-1]"));
  CHECK(has(lines, "GresTypes=gpu"));
  CHECK(has(lines, "NodeName=a-[0-3] Gres=gpu:8 State=CLOUD"));
  CHECK(has(lines, "NodeName=b-[0-1] CPUs=8 State=CLOUD"));
  CHECK(has(lines,
            "PartitionName=a Nodes=a-[0-3] MaxTime=6-23:45:00 DefaultTime=01:00:00 "
            "OverSubscribe=EXCLUSIVE State=UP"));
  CHECK(has(lines,
            "PartitionName=b Nodes=b-[0-1] MaxTime=01:45:00 DefaultTime=01:00:00 "
            "OverSubscribe=EXCLUSIVE State=UP"));
}

TEST_CASE("slurm-conf: releases differ in what they need", "[ctl]") {
  const Config config = two_nodesets();
  const auto old = lines_for(config, {22, 5});
  CHECK(has(old, "ResumeTimeout=65533"));
  CHECK(has(old, "PrivateData=cloud"));
  CHECK(has(old, "TreeWidth=65533"));
  CHECK(has(old, "SlurmctldParameters=idle_on_node_suspend,cloud_reg_addrs"));
  const auto middle = lines_for(config, {24, 11});
  CHECK(has(middle, "ResumeTimeout=65533"));
  CHECK_FALSE(has(middle, "PrivateData=cloud"));
  CHECK_FALSE(has(middle, "TreeWidth=65533"));
  CHECK(has(middle, "SlurmctldParameters=idle_on_node_suspend"));
  CHECK(has(lines_for(config, {25, 5}), "ResumeTimeout=INFINITE"));
}

TEST_CASE("slurm-conf: a config without static nodes and GPUs has no line for them", "[ctl]") {
  const auto lines = lines_for(config({nodeset("a", nodes("a", 1))}), {22, 5});
  for (const std::string& line : lines) {
    CHECK_FALSE(line.starts_with("SuspendExcNodes"));
    CHECK_FALSE(line.starts_with("GresTypes"));
  }
  CHECK(has(lines, "NodeName=a-0 State=CLOUD"));
}

TEST_CASE("slurm-conf: what the name of a machine type tells", "[ctl]") {
  CHECK(size_of_machine("h4d-standard-192").cpus == 192);
  CHECK(size_of_machine("a3-ultragpu-8g").gpus == 8);
  CHECK_FALSE(size_of_machine("a3-ultragpu-8g").cpus);
  for (const char* name : {"n2-custom-8-16384", "n2-custom-8-16384-ext", "custom-8-16384"}) {
    CAPTURE(name);
    CHECK(size_of_machine(name).cpus == 8);
  }
  for (const char* name :
       {"", "n2", "n2-custom-", "n2-custom-x-1024", "x-", "x-y", "ct5lp-hightpu-4t", "x-0"}) {
    CHECK_FALSE(size_of_machine(name).cpus);
    CHECK_FALSE(size_of_machine(name).gpus);
  }
}

TEST_CASE("slurm-conf: a release is two numbers", "[ctl]") {
  CHECK(*parse_slurm_release("22.05") == SlurmRelease{22, 5});
  CHECK(*parse_slurm_release("24.11.5") == SlurmRelease{24, 11});
  for (const char* text : {"", "22", "22.", "x", "22.13", "22.05x", "-1.05", "22.0"})
    CHECK_FALSE(parse_slurm_release(text));
  CHECK(to_string(SlurmRelease{22, 5}) == "22.05");
  CHECK(library_release() >= SlurmRelease{22, 5});
}
