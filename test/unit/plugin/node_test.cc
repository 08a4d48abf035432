// SPDX-License-Identifier: GPL-2.0-or-later
// The plugin's callbacks as slurmstepd calls them on a node.
#include "plugin/spank_api.h"
#include "test/support/catch.h"
#include "test/unit/plugin/fake_spank.h"

#include <slurm/slurm.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

using namespace flex::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

// libslurm's, not declared by its header.
extern "C" slurm_conf_t slurm_conf;

namespace {

constexpr std::uint32_t kJob = 7;

/// A node with a spool directory that goes with the test.
class NodeUnderTest {
 public:
  NodeUnderTest() {
    std::string name = fs::temp_directory_path() / "flex-node-XXXXXX";
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    spool_ = name;
    fs::create_directory(fs::path(spool_) / "a-0");
    path_ = spool_ + "/%n";
    slurm_conf.slurmd_spooldir = path_.data();
    ::setenv("SLURMD_NODENAME", "a-0", 1);
  }

  NodeUnderTest(const NodeUnderTest&) = delete;
  NodeUnderTest& operator=(const NodeUnderTest&) = delete;

  ~NodeUnderTest() {
    slurm_conf.slurmd_spooldir = nullptr;
    fs::remove_all(spool_);
  }

  /// Its end of the VM is so many seconds from now.
  void set_extra(const std::string& node, std::chrono::seconds left, const std::string& request) {
    extra_[node] = "site=x flex(end=" + std::to_string(end(left)) +
                   ",nodeset=" + node.substr(0, 1) + ",request=" + request + ")";
  }

  [[nodiscard]] static std::int64_t end(std::chrono::seconds left) {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now() + left)
        .time_since_epoch()
        .count();
  }

  /// slurmstepd of a step of a job on these nodes, up to where its tasks begin.
  FakeSpank& run_step(std::uint32_t step, const std::string& nodes) {
    return run_step(step, std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", nodes}});
  }

  FakeSpank& run_step(std::uint32_t step, std::map<std::string, std::string> environment) {
    FakeSpank& spank = new_spank(S_CTX_REMOTE);
    spank.items = {{S_JOB_ID, kJob}, {S_JOB_STEPID, step}};
    spank.job_environment = std::move(environment);
    spank.node_extra = extra_;
    spank.controller = controller;
    spank.words = words;
    CHECK(spank.call(slurm_spank_init) == 0);
    CHECK(spank.call(slurm_spank_init_post_opt) == 0);
    CHECK(spank.call(slurm_spank_user_init) == 0);
    return spank;
  }

  [[nodiscard]] fs::path cached() const { return fs::path(spool_) / "a-0/flex-start/7"; }

  Controller controller = Controller::Answers;
  std::vector<std::string> words{};

 private:
  std::string spool_{};
  std::string path_{};
  std::map<std::string, std::string> extra_{};
};

std::string seen(FakeSpank& spank, const std::string& what) {
  return spank.job_environment["SLURM_FLEX_" + what];
}

}  // namespace

TEST_CASE("node: the tasks of a job on one VM know when it ends", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "j7-1");
  FakeSpank& spank = node.run_step(SLURM_BATCH_SCRIPT, "a-0");
  CHECK(std::stoll(seen(spank, "END_TIME")) >= NodeUnderTest::end(50min));
  CHECK(seen(spank, "NODESET") == "a");
  CHECK(seen(spank, "REQUEST") == "j7-1");
  CHECK(spank.single_loads() == 1);
  CHECK(spank.full_loads() == 0);
}

TEST_CASE("node: a step that comes later reads, and does not ask", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "j7-1");
  const std::string end = seen(node.run_step(SLURM_BATCH_SCRIPT, "a-0"), "END_TIME");
  node.set_extra("a-0", 2h, "other");
  FakeSpank& spank = node.run_step(0, "a-0");
  CHECK(seen(spank, "END_TIME") == end);
  CHECK(seen(spank, "REQUEST") == "j7-1");
  CHECK(spank.single_loads() == 0);
}

TEST_CASE("node: of several VMs the one that ends first counts", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 3h, "r0");
  node.set_extra("a-1", 1h, "r1");
  node.set_extra("a-2", 30min, "not of this job");
  node.set_extra("b-5", 2h, "r5");

  SECTION("of one job") {
    FakeSpank& spank = node.run_step(0, "a-[0-1],b-5");
    CHECK(seen(spank, "REQUEST") == "r1");
    CHECK(spank.full_loads() == 1);
    CHECK(spank.single_loads() == 0);
  }
  SECTION("of a job with components") {
    node.set_extra("a-1", -1h, "a VM of yesterday");
    FakeSpank& spank = node.run_step(
        SLURM_BATCH_SCRIPT,
        std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", "a-[0-1]"},
                                           {"SLURM_JOB_NODELIST_HET_GROUP_0", "a-[0-1]"},
                                           {"SLURM_JOB_ID_HET_GROUP_0", "7"},
                                           {"SLURM_JOB_NODELIST_HET_GROUP_1", "b-[5-6]"},
                                           {"SLURM_JOB_ID_HET_GROUP_1", "8"}});
    CHECK(seen(spank, "REQUEST") == "r5");
    CHECK(seen(spank, "NODESET") == "b");
  }
  SECTION("not of a job with components from inside which this one was submitted") {
    FakeSpank& spank =
        node.run_step(SLURM_BATCH_SCRIPT,
                      std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", "a-0"},
                                                         {"SLURM_JOB_NODELIST_HET_GROUP_0", "a-2"},
                                                         {"SLURM_JOB_ID_HET_GROUP_0", "5"},
                                                         {"SLURM_JOB_NODELIST_HET_GROUP_1", "b-5"},
                                                         {"SLURM_JOB_ID_HET_GROUP_1", "6"}});
    CHECK(seen(spank, "REQUEST") == "r0");
    CHECK(spank.single_loads() == 1);
  }
  SECTION(
      "of a step from outside, which has its own nodes in one list and the job's in the other") {
    FakeSpank& spank =
        node.run_step(3,
                      std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", "a-0"},
                                                         {"SLURM_NODELIST", "a-[0-1]"}});
    CHECK(seen(spank, "REQUEST") == "r1");
  }
}

TEST_CASE("node: of a big job the batch script asks for all, a step for its own node", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 2h, "r0");
  node.set_extra("a-64", 1h, "r64");
  const std::uint32_t step = GENERATE(SLURM_BATCH_SCRIPT, 0U);
  FakeSpank& spank = node.run_step(step, "a-[0-64]");
  CHECK(seen(spank, "REQUEST") == (step == 0 ? "r0" : "r64"));
  CHECK(spank.single_loads() == (step == 0 ? 1 : 0));
}

TEST_CASE("node: a step of a big job keeps what the batch script was told", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 2h, "r0");
  const auto [job, left, request] = GENERATE(table<std::string, std::chrono::seconds, std::string>(
      {{"7", 1h, "r64"}, {"6", 1h, "r0"}, {"7", 3h, "r0"}, {"7", -1h, "r0"}}));
  FakeSpank& spank =
      node.run_step(0,
                    std::map<std::string, std::string>{
                        {"SLURM_JOB_NODELIST", "a-[0-64]"},
                        {"SLURM_FLEX_JOB_ID", job},
                        {"SLURM_FLEX_END_TIME", std::to_string(NodeUnderTest::end(left))},
                        {"SLURM_FLEX_NODESET", "a"},
                        {"SLURM_FLEX_REQUEST", "r64"}});
  CHECK(seen(spank, "REQUEST") == request);
  CHECK(seen(spank, "JOB_ID") == "7");
}

TEST_CASE("node: a list that is not this node's is not believed", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 2h, "r0");
  node.set_extra("b-0", 1h, "r1");
  const auto list = GENERATE(
      as<std::string>{}, "b-[0-1]", "", "a-[0-", "a-[0-99999999999]", std::string(100000, 'x'));
  INFO(list.substr(0, 40));
  FakeSpank& spank = node.run_step(0, list);
  CHECK(seen(spank, "REQUEST") == "r0");
  CHECK(spank.single_loads() == 1);
}

TEST_CASE("node: a job without a lease has none of another's", "[plugin]") {
  NodeUnderTest node;
  FakeSpank& spank =
      node.run_step(0,
                    std::map<std::string, std::string>{
                        {"SLURM_JOB_NODELIST", "a-0"},
                        {"SLURM_FLEX_END_TIME", "1"},
                        {"SLURM_FLEX_NODESET", "x"},
                        {"SLURM_FLEX_REQUEST", "y"},
                        {"SLURM_FLEX_JOB_ID", "7"},
                        {"SLURM_SPANK__SLURM_SPANK_OPTION_flex_start_flex_max_wait", "1h"}});
  CHECK(spank.job_environment.size() == 1);
  CHECK(fs::exists(node.cached()));
}

TEST_CASE("node: a lease without a request", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "");
  FakeSpank& spank = node.run_step(0,
                                   std::map<std::string, std::string>{{"SLURM_JOB_NODELIST", "a-0"},
                                                                      {"SLURM_FLEX_REQUEST", "y"}});
  CHECK(seen(spank, "NODESET") == "a");
  CHECK(spank.job_environment.count("SLURM_FLEX_REQUEST") == 0);
}

TEST_CASE("node: whatever slurmctld does, the job starts, and its next step does not ask",
          "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "r0");
  node.controller = GENERATE(Controller::Fails, Controller::Hangs, Controller::Exits);
  const auto begin = std::chrono::steady_clock::now();
  FakeSpank& spank = node.run_step(SLURM_BATCH_SCRIPT, "a-0");
  CHECK(std::chrono::steady_clock::now() - begin < 30s);
  CHECK(spank.job_environment.count("SLURM_FLEX_END_TIME") == 0);
  CHECK(spank.errors.empty());
  CHECK(spank.infos == std::vector<std::string>{
                           "flex-start: slurmctld did not say in time when this job's VMs end"});
  CHECK(node.run_step(0, "a-0").single_loads() == 0);
}

TEST_CASE("node: the extern step does nothing", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "r0");
  CHECK(node.run_step(SLURM_EXTERN_CONT, "a-0").single_loads() == 0);
  CHECK(!fs::exists(node.cached()));
}

TEST_CASE("node: lease=off, and arguments that are wrong", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "r0");
  node.words = {GENERATE(as<std::string>{}, "lease=off", "lease=maybe")};
  FakeSpank& spank = node.run_step(0, "a-0");
  CHECK(spank.single_loads() == 0);
  CHECK(spank.options.size() == 3);
  CHECK(spank.job_environment.count("SLURM_FLEX_END_TIME") == 0);
  CHECK(spank.errors.size() == (node.words[0] == "lease=maybe" ? 1 : 0));
}

TEST_CASE("node: without a place for its files nothing is asked", "[plugin]") {
  NodeUnderTest node;
  node.set_extra("a-0", 1h, "r0");
  node.words = {"cache_dir=/nowhere/%n/flex"};
  FakeSpank& spank = node.run_step(0, "a-0");
  CHECK(spank.single_loads() == 0);
  CHECK(spank.infos == std::vector<std::string>{"flex-start: /nowhere/a-0/flex: No such file or "
                                                "directory; the job is not told when its VMs end"});
}

TEST_CASE("node: options that came along are accepted", "[plugin]") {
  NodeUnderTest node;
  FakeSpank& spank = node.run_step(0, "a-0");
  CHECK(spank.type("flex-run-duration", "of another release", 1) == 0);
  CHECK(spank.errors.empty());
}

TEST_CASE("node: the epilog takes the job's file away, and never fails", "[plugin]") {
  NodeUnderTest node;
  node.run_step(0, "a-0");
  REQUIRE(fs::exists(node.cached()));
  FakeSpank& spank = new_spank(S_CTX_JOB_SCRIPT);
  spank.items = {{S_JOB_ID, kJob}};
  CHECK(spank.call(slurm_spank_job_epilog) == 0);
  CHECK(!fs::exists(node.cached()));
  CHECK(spank.call(slurm_spank_job_epilog) == 0);
  fs::remove(node.cached().parent_path());
  CHECK(spank.call(slurm_spank_job_epilog) == 0);
  CHECK(spank.infos.empty());
  spank.words = {"typo=1"};
  CHECK(spank.call(slurm_spank_job_epilog) == 0);
}
