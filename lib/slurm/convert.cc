// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/convert.h"

#include "lib/slurm/accounting.h"
#include "lib/slurm/handles.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace flex::slurm {
namespace {

TimePoint to_time(time_t seconds) {
  return TimePoint{Seconds{seconds}};
}

/// A partition's timeout; 0 where it has none of its own.
Seconds to_timeout(std::uint16_t seconds) {
  return seconds == NO_VAL16 ? Seconds{0} : Seconds{seconds};
}

/// Of a job that has none slurmctld says 0 or NO_VAL.
std::optional<TimePoint> to_deadline(time_t seconds) {
  if (seconds <= 0 || seconds == static_cast<time_t>(NO_VAL)) return std::nullopt;
  return to_time(seconds);
}

/// "a,b"; null and "ALL" are empty.
std::vector<std::string> to_list(const char* text) {
  std::vector<std::string> words;
  std::string_view rest = text == nullptr ? std::string_view{} : std::string_view{text};
  if (rest == "ALL") return words;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma > 0) words.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return words;
}

/// OverTimeLimit, which is in minutes.
Seconds to_over_limit(std::uint16_t minutes) {
  if (minutes == NO_VAL16 || minutes == INFINITE16) return Seconds{0};
  return std::chrono::minutes{minutes};
}

std::optional<Seconds> to_own_over_limit(std::uint16_t minutes) {
  if (minutes == NO_VAL16) return std::nullopt;
  return to_over_limit(minutes);
}

std::optional<std::uint32_t> to_count(std::uint32_t nodes) {
  if (nodes == NO_VAL || nodes == INFINITE) return std::nullopt;
  return nodes;
}

std::optional<std::uint32_t> to_task(std::uint32_t task) {
  if (task == NO_VAL || task == INFINITE) return std::nullopt;
  return task;
}

}  // namespace

std::string to_text(const char* text) {
  return text == nullptr ? std::string{} : std::string{text};
}

std::vector<NodeName> to_nodes(const char* hostlist) {
  std::vector<NodeName> nodes;
  if (hostlist == nullptr || *hostlist == '\0') return nodes;
  const HostlistPtr list(slurm_hostlist_create(hostlist));
  if (!list) return nodes;
  nodes.reserve(static_cast<std::size_t>(std::max(0, slurm_hostlist_count(list.get()))));
  while (const MallocString name{slurm_hostlist_shift(list.get())}) nodes.push_back({name.get()});
  return nodes;
}

std::optional<Seconds> to_limit(std::uint32_t minutes) {
  if (minutes == INFINITE || minutes == NO_VAL) return std::nullopt;
  return std::chrono::minutes{minutes};
}

Node to_node(const node_info_t& node) {
  return {.name = {to_text(node.name)},
          .state = node.node_state,
          .reason = to_text(node.reason),
          .comment = to_text(node.comment),
          .extra = to_text(node.extra),
          .address = to_text(node.node_addr),
          .boot_time = to_time(node.boot_time),
          .last_busy = to_time(node.last_busy)};
}

Job to_job(const slurm_job_info_t& job) {
  const auto base = job.job_state & JOB_STATE_BASE;
  const bool is_configuring = (job.job_state & JOB_CONFIGURING) != 0;
  // A requeued job's record keeps the nodes that it had.
  const bool has_nodes = base != JOB_PENDING || (job.job_state & JOB_COMPLETING) != 0;
  return {.id = job_id(job),
          .state = job.job_state,
          .time_limit = to_limit(job.time_limit),
          .time_min = job.time_min == 0 ? std::nullopt : to_limit(job.time_min),
          .restart_count = job.restart_cnt,
          .nodes = to_nodes(has_nodes ? job.nodes : nullptr),
          .partition = to_text(job.partition),
          .reservation = to_text(job.resv_name),
          .account = to_text(job.account),
          .qos = to_text(job.qos),
          .association = job.assoc_id,
          // For jobs that wait for their nodes only: it is a text for each job there is.
          .tres_asked = to_text(is_configuring ? job.tres_req_str : nullptr),
          .tres_allocated = to_text(is_configuring ? job.tres_alloc_str : nullptr),
          .name = to_text(job.name),
          .user = to_text(job.user_name),
          .comment = to_text(job.comment),
          .admin_comment = to_text(job.admin_comment),
          .extra = to_text(job_extra(job)),
          .array_job_id = job.array_job_id,
          .array_task = to_task(job.array_task_id),
          .het_job_id = job.het_job_id,
          .user_id = job.user_id,
          .is_batch = job.batch_flag != 0,
          .may_requeue = job.requeue != 0,
          .is_configuring = is_configuring,
          .is_running = base == JOB_RUNNING,
          .is_pending = base == JOB_PENDING,
          .is_finished = base > JOB_SUSPENDED,
          .submit_time = to_time(job.submit_time),
          .start_time = to_time(job.start_time),
          .end_time = to_time(job.end_time),
          .deadline = to_deadline(job.deadline)};
}

Partition to_partition(const partition_info_t& partition, bool knows_infinite) {
  return {.name = to_text(partition.name),
          .nodes = to_nodes(partition.nodes),
          .max_time = to_limit(partition.max_time),
          .default_time = to_limit(partition.default_time),
          .resume_timeout = to_timeout(partition.resume_timeout),
          .resume_timeout_is_infinite = knows_infinite && partition.resume_timeout == INFINITE16,
          .suspend_timeout = to_timeout(partition.suspend_timeout),
          .over_time_limit = to_own_over_limit(partition.over_time_limit),
          // OverSubscribe=EXCLUSIVE; NO is 1.
          .is_exclusive = partition.max_share == 0,
          .starts_jobs = (partition.state_up & PARTITION_SCHED) != 0,
          .allow_accounts = to_list(partition.allow_accounts),
          .deny_accounts = to_list(partition.deny_accounts),
          .allow_qos = to_list(partition.allow_qos),
          .deny_qos = to_list(partition.deny_qos),
          .qos = to_text(partition.qos_char),
          .max_nodes = to_count(partition.max_nodes),
          .min_nodes = partition.min_nodes};
}

Reservation to_reservation(const reserve_info_t& reservation) {
  return {.name = to_text(reservation.name),
          .nodes = to_nodes(reservation.node_list),
          .start = to_time(reservation.start_time),
          .end = to_time(reservation.end_time),
          .is_maintenance = (reservation.flags & RESERVE_FLAG_MAINT) != 0,
          .ignores_jobs = (reservation.flags & RESERVE_FLAG_IGN_JOBS) != 0,
          .may_overlap = (reservation.flags & RESERVE_FLAG_OVERLAP) != 0,
          .is_partial = reservation.core_spec_cnt > 0};
}

bool knows_infinite(std::string_view version) {
  const char* const end = version.data() + version.size();
  std::pair<int, int> release{};
  const auto year = std::from_chars(version.data(), end, release.first);
  if (year.ec != std::errc{} || year.ptr == end || *year.ptr != '.') return kKnowsInfinite;
  const auto month = std::from_chars(year.ptr + 1, end, release.second);
  if (month.ec != std::errc{}) return kKnowsInfinite;
  return release >= std::pair{kInfiniteSinceYear, kInfiniteSinceMonth};
}

SlurmSettings to_settings(const slurm_conf_t& conf) {
  std::string version = to_text(conf.version);
  const bool is_infinite = conf.resume_timeout == INFINITE16 && knows_infinite(version);
  return {.resume_timeout = to_timeout(conf.resume_timeout),
          .resume_timeout_is_infinite = is_infinite,
          .suspend_timeout = to_timeout(conf.suspend_timeout),
          .kill_wait = Seconds{conf.kill_wait},
          .over_time_limit = to_over_limit(conf.over_time_limit),
          .state_save_location = to_text(conf.state_save_location),
          .version = std::move(version),
          .enforced = to_enforcement(conf.accounting_storage_enforce)};
}

}  // namespace flex::slurm
