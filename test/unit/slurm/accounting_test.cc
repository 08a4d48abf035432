// SPDX-License-Identifier: GPL-2.0-or-later
// Associations and QOS as slurmctld sends them.
#include "lib/slurm/accounting.h"

#include "test/support/catch.h"

#include <array>

using namespace flex;

namespace {

/// With no limit at all; slurmctld's records say INFINITE for that.
slurmdb_qos_rec_t no_limits() {
  slurmdb_qos_rec_t qos{};
  qos.grp_jobs = qos.max_jobs_pu = qos.max_jobs_pa = qos.max_wall_pj = INFINITE;
  qos.limit_factor = static_cast<double>(NO_VAL);
  qos.usage_factor = 1;
  return qos;
}

}  // namespace

TEST_CASE("to_accounting: limits by name, and the names of QOS", "[slurm]") {
  std::string cpu = "cpu";
  std::string node = "node";
  std::array<char*, 2> names{cpu.data(), node.data()};
  std::array<std::uint64_t, 2> tres{INFINITE64, 4};
  std::string qos_name = "high";
  std::string number = "7";
  std::string user = "ann";
  std::string account = "physics";

  slurmdb_qos_rec_t qos = no_limits();
  qos.id = 7;
  qos.name = qos_name.data();
  qos.flags = QOS_FLAG_OVER_PART_QOS | QOS_FLAG_PART_TIME_LIMIT;
  qos.max_wall_pj = 30;
  qos.usage_factor = 0.5;  // counts with a flag only
  slurmdb_assoc_rec_t association{};
  association.id = 4;
  association.parent_id = 3;
  association.user = user.data();
  association.acct = account.data();
  association.grp_jobs = 0;
  association.max_jobs = INFINITE;
  association.max_wall_pj = INFINITE;
  association.grp_tres_ctld = tres.data();
  association.qos_list = slurm_list_create(nullptr);
  slurm_list_append(association.qos_list, number.data());
  assoc_mgr_info_msg_t answer{};
  answer.tres_cnt = names.size();
  answer.tres_names = names.data();
  answer.qos_list = slurm_list_create(nullptr);
  slurm_list_append(answer.qos_list, &qos);
  answer.assoc_list = slurm_list_create(nullptr);
  slurm_list_append(answer.assoc_list, &association);

  const Accounting made = slurm::to_accounting(answer);
  REQUIRE(made.associations.size() == 1);
  const Association& of_ann = made.associations[0];
  CHECK(of_ann.id == 4);
  CHECK(of_ann.parent_id == 3);
  CHECK(of_ann.user == "ann");
  CHECK(of_ann.account == "physics");
  CHECK(of_ann.limits.group_jobs == 0);
  CHECK_FALSE(of_ann.limits.user_jobs);
  CHECK_FALSE(of_ann.limits.wall);
  CHECK(of_ann.limits.group_tres == TresCounts{{"node", 4}});
  CHECK(of_ann.limits.job_tres.empty());
  CHECK(of_ann.qos == std::vector<std::string>{"high"});
  CHECK(made.find(4) == &of_ann);
  CHECK(made.find(5) == nullptr);
  REQUIRE(made.qos.size() == 1);
  CHECK(made.qos[0].limits.wall == Seconds{1800});
  CHECK_FALSE(made.qos[0].limits.group_jobs);
  CHECK(made.qos[0].overrides_partition);
  CHECK(made.qos[0].ignores_partition_time);
  CHECK_FALSE(made.qos[0].ignores_partition_max_nodes);
  CHECK(made.qos[0].limit_factor == 1);
  CHECK(made.qos[0].time_factor == 1);
  slurm_list_destroy(association.qos_list);
  slurm_list_destroy(answer.qos_list);
  slurm_list_destroy(answer.assoc_list);
}

TEST_CASE("to_accounting: a site without", "[slurm]") {
  const Accounting made = slurm::to_accounting(assoc_mgr_info_msg_t{});
  CHECK(made.associations.empty());
  CHECK(made.qos.empty());
}

TEST_CASE("to_enforcement", "[slurm]") {
  CHECK_FALSE(slurm::to_enforcement(0).associations);
  const Enforcement all = slurm::to_enforcement(0x000b);
  CHECK(all.associations);
  CHECK(all.limits);
  CHECK(all.qos);
  CHECK_FALSE(slurm::to_enforcement(0x0003).qos);
}
