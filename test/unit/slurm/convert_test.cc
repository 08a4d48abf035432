// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/convert.h"

#include "test/support/catch.h"

#include <string>

using namespace flex;

namespace {

slurm_job_info_t some_job(std::uint32_t state) {
  slurm_job_info_t job{};
  job.job_state = state;
  return job;
}

}  // namespace

TEST_CASE("to_job: a limit that is none is empty", "[slurm]") {
  auto job = some_job(JOB_PENDING);
  job.time_limit = 240;
  CHECK(slurm::to_job(job).time_limit == Seconds{14400});
  job.time_limit = INFINITE;
  CHECK_FALSE(slurm::to_job(job).time_limit);
  job.time_limit = NO_VAL;
  CHECK_FALSE(slurm::to_job(job).time_limit);
  job.time_limit = 0;
  CHECK(slurm::to_job(job).time_limit == Seconds{0});
}

TEST_CASE("to_job: null texts and lists are empty", "[slurm]") {
  const auto job = slurm::to_job(some_job(JOB_RUNNING));
  CHECK(job.nodes.empty());
  CHECK(job.partition.empty());
  CHECK(job.comment.empty());
  CHECK(job.admin_comment.empty());
  CHECK(job.extra.empty());
}

TEST_CASE("to_job: tells a configuring, running, pending and finished job apart", "[slurm]") {
  struct Row {
    std::uint32_t state;
    bool is_configuring, is_running, is_pending, is_finished;
  };

  const auto row = GENERATE(values<Row>({
      {JOB_PENDING, false, false, true, false},
      {JOB_PENDING | JOB_COMPLETING, false, false, true, false},
      {JOB_RUNNING, false, true, false, false},
      {JOB_RUNNING | JOB_CONFIGURING, true, true, false, false},
      {JOB_SUSPENDED, false, false, false, false},
      {JOB_COMPLETE, false, false, false, true},
      {JOB_CANCELLED | JOB_COMPLETING, false, false, false, true},
      {JOB_NODE_FAIL, false, false, false, true},
      {JOB_OOM, false, false, false, true},
  }));
  INFO(row.state);
  const auto job = slurm::to_job(some_job(row.state));
  CHECK(job.state == row.state);
  CHECK(job.is_configuring == row.is_configuring);
  CHECK(job.is_running == row.is_running);
  CHECK(job.is_pending == row.is_pending);
  CHECK(job.is_finished == row.is_finished);
}

TEST_CASE("to_job: leaves out the nodes that a requeued job had", "[slurm]") {
  std::string nodes = "n[0-1]";
  auto job = some_job(JOB_RUNNING);
  job.nodes = nodes.data();
  CHECK(slurm::to_job(job).nodes == std::vector<NodeName>{{"n0"}, {"n1"}});
  job.job_state = JOB_PENDING | JOB_COMPLETING;
  CHECK(slurm::to_job(job).nodes.size() == 2);
  job.job_state = JOB_PENDING;
  CHECK(slurm::to_job(job).nodes.empty());
}

TEST_CASE("to_partition: no limit and no timeout of its own", "[slurm]") {
  std::string nodes = "n[0-1]";
  partition_info_t raw{};
  raw.nodes = nodes.data();
  raw.max_time = INFINITE;
  raw.default_time = 10;
  raw.resume_timeout = NO_VAL16;
  raw.suspend_timeout = 30;
  const auto partition = slurm::to_partition(raw);
  CHECK(partition.nodes.size() == 2);
  CHECK_FALSE(partition.max_time);
  CHECK(partition.default_time == Seconds{600});
  CHECK(partition.resume_timeout == Seconds{0});
  CHECK(partition.suspend_timeout == Seconds{30});
}

TEST_CASE("to_partition: OverTimeLimit in minutes, none of its own, and UNLIMITED", "[slurm]") {
  partition_info_t raw{};
  raw.over_time_limit = NO_VAL16;
  CHECK_FALSE(slurm::to_partition(raw).over_time_limit);
  raw.over_time_limit = 5;
  CHECK(slurm::to_partition(raw).over_time_limit == Seconds{300});
  raw.over_time_limit = INFINITE16;
  CHECK(slurm::to_partition(raw).over_time_limit == Seconds{0});
}

TEST_CASE("to_partition: which states start jobs, and for whom", "[slurm]") {
  partition_info_t raw{};
  const auto [state, expected] =
      GENERATE(table<std::uint16_t, bool>({{PARTITION_UP, true},
                                           {PARTITION_DRAIN, true},
                                           {PARTITION_DOWN, false},
                                           {PARTITION_INACTIVE, false}}));
  raw.state_up = state;
  CHECK(slurm::to_partition(raw).starts_jobs == expected);
  CHECK(slurm::to_partition(raw).allow_accounts.empty());
  std::string all = "ALL";
  std::string some = "physics,,chem";
  raw.allow_accounts = some.data();
  raw.deny_accounts = some.data();
  raw.allow_qos = all.data();
  raw.deny_qos = all.data() + 3;
  const auto partition = slurm::to_partition(raw);
  CHECK(partition.allow_accounts == std::vector<std::string>{"physics", "chem"});
  CHECK(partition.deny_accounts == partition.allow_accounts);
  CHECK(partition.allow_qos.empty());
  CHECK(partition.deny_qos.empty());
}

TEST_CASE("to_job: what slurmctld tests at allocation", "[slurm]") {
  std::string text = "course";
  slurm_job_info_t raw{};
  raw.time_min = NO_VAL;
  CHECK_FALSE(slurm::to_job(raw).deadline);
  CHECK_FALSE(slurm::to_job(raw).time_min);
  CHECK(slurm::to_job(raw).reservation.empty());
  raw.time_min = 0;
  CHECK_FALSE(slurm::to_job(raw).time_min);
  raw.time_min = 5;
  raw.deadline = 1000;
  raw.resv_name = raw.account = raw.qos = text.data();
  const Job job = slurm::to_job(raw);
  CHECK(job.deadline == TimePoint{Seconds{1000}});
  CHECK(job.time_min == Seconds{300});
  CHECK(job.reservation == text);
  CHECK(job.account == text);
  CHECK(job.qos == text);
  raw.deadline = static_cast<time_t>(NO_VAL);
  CHECK_FALSE(slurm::to_job(raw).deadline);
}

TEST_CASE("to_node: copies what is there", "[slurm]") {
  std::string name = "n0";
  std::string reason = "why";
  node_info_t raw{};
  raw.name = name.data();
  raw.reason = reason.data();
  raw.node_state = NODE_STATE_IDLE;
  raw.boot_time = 1000;
  const auto node = slurm::to_node(raw);
  CHECK(node.name.text == "n0");
  CHECK(node.reason == "why");
  CHECK(node.comment.empty());
  CHECK(node.state == NODE_STATE_IDLE);
  CHECK(node.boot_time == TimePoint{Seconds{1000}});
}

TEST_CASE("to_partition: 65535 is infinite for a slurmctld that knows it, else seconds",
          "[slurm]") {
  partition_info_t raw{};
  raw.resume_timeout = INFINITE16;
  CHECK(slurm::to_partition(raw, true).resume_timeout_is_infinite);
  CHECK_FALSE(slurm::to_partition(raw, false).resume_timeout_is_infinite);
  CHECK(slurm::to_partition(raw, false).resume_timeout == Seconds{65535});
  raw.resume_timeout = NO_VAL16;
  CHECK_FALSE(slurm::to_partition(raw, true).resume_timeout_is_infinite);
}

TEST_CASE("knows_infinite: from 25.05 on", "[slurm]") {
  const auto [version, expected] = GENERATE(table<std::string, bool>({
      {"22.05.8", false},
      {"24.11.7", false},
      {"25.02.0", false},
      {"25.05.0-0rc1", true},
      {"25.11.3", true},
      {"26.05.5", true},
      {"", slurm::kKnowsInfinite},
      {"25", slurm::kKnowsInfinite},
      {"trunk", slurm::kKnowsInfinite},
  }));
  INFO(version);
  CHECK(slurm::knows_infinite(version) == expected);
}

TEST_CASE("to_settings: copies what is there", "[slurm]") {
  std::string version = "24.11.5";
  std::string location = "/var/spool/slurmctld";
  slurm_conf_t raw{};
  raw.version = version.data();
  raw.state_save_location = location.data();
  raw.resume_timeout = INFINITE16;
  raw.suspend_timeout = 30;
  raw.kill_wait = 45;
  raw.over_time_limit = 2;
  auto settings = slurm::to_settings(raw);
  CHECK(settings.kill_wait == Seconds{45});
  CHECK(settings.over_time_limit == Seconds{120});
  raw.over_time_limit = INFINITE16;
  CHECK(slurm::to_settings(raw).over_time_limit == Seconds{0});
  CHECK(settings.version == version);
  CHECK(settings.state_save_location == location);
  CHECK(settings.resume_timeout == Seconds{65535});
  CHECK_FALSE(settings.resume_timeout_is_infinite);
  CHECK(settings.suspend_timeout == Seconds{30});
  version = "25.05.1";
  raw.version = version.data();
  CHECK(slurm::to_settings(raw).resume_timeout_is_infinite);
  raw.resume_timeout = 600;
  CHECK_FALSE(slurm::to_settings(raw).resume_timeout_is_infinite);
}

TEST_CASE("to_partition: exclusive is OverSubscribe=EXCLUSIVE only", "[slurm]") {
  partition_info_t raw{};
  raw.max_share = 0;
  CHECK(slurm::to_partition(raw).is_exclusive);
  raw.max_share = 1;  // OverSubscribe=NO
  CHECK_FALSE(slurm::to_partition(raw).is_exclusive);
  raw.max_share = SHARED_FORCE | 4;
  CHECK_FALSE(slurm::to_partition(raw).is_exclusive);
}

TEST_CASE("to_reservation: copies what is there", "[slurm]") {
  std::string name = "flex-eol-20260101T0000";
  std::string nodes = "n[0-1]";
  reserve_info_t raw{};
  raw.name = name.data();
  raw.node_list = nodes.data();
  raw.start_time = 1000;
  raw.end_time = 2000;
  raw.flags = RESERVE_FLAG_MAINT | RESERVE_FLAG_SPEC_NODES;
  auto reservation = slurm::to_reservation(raw);
  CHECK(reservation.name == name);
  CHECK(reservation.nodes == std::vector<NodeName>{{"n0"}, {"n1"}});
  CHECK(reservation.start == TimePoint{Seconds{1000}});
  CHECK(reservation.end == TimePoint{Seconds{2000}});
  CHECK(reservation.is_maintenance);
  CHECK_FALSE(reservation.ignores_jobs);
  CHECK_FALSE(reservation.is_partial);
  raw.core_spec_cnt = 2;
  CHECK(slurm::to_reservation(raw).is_partial);
  // One without nodes, for licences alone, has no list.
  raw.node_list = nullptr;
  raw.flags = RESERVE_FLAG_IGN_JOBS;
  reservation = slurm::to_reservation(raw);
  CHECK(reservation.nodes.empty());
  CHECK_FALSE(reservation.is_maintenance);
  CHECK(reservation.ignores_jobs);
}
