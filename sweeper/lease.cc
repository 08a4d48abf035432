// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/lease.h"

#include <algorithm>

namespace flex {

namespace {

void add_nodes(const Picture& picture, const Job& job, std::optional<JobLease>& first) {
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr || !node->has_vm() || !node->entry->terminates) continue;
    const TimePoint ends = *node->entry->terminates;
    if (!first || ends < first->ends) first = {.ends = ends, .nodeset = node->nodeset};
  }
}

}  // namespace

std::optional<JobLease> lease_of(const Picture& picture, const Job& job) {
  std::optional<JobLease> first;
  add_nodes(picture, job, first);
  if (job.het_job_id == 0) return first;
  // Its parts have numbers in a row, and end together.
  for (JobId id = job.het_job_id;; ++id) {
    const Job* part = picture.find_job(id);
    if (part == nullptr || part->het_job_id != job.het_job_id) return first;
    if (part->holds_nodes()) add_nodes(picture, *part, first);
  }
}

std::optional<Overrun> overrun_of(const Job& job, const JobLease& lease) {
  // While it waits for its nodes, slurmctld does not know yet when it will end.
  if (job.is_configuring || !job.holds_nodes()) return std::nullopt;
  if (job.time_limit && job.end_time <= lease.ends) return std::nullopt;
  Overrun overrun{.ends = lease.ends,
                  .time_limit = std::nullopt,
                  .is_requeued = job.is_batch && job.may_requeue,
                  .limit_to_come = std::nullopt};
  if (job.time_limit) overrun.time_limit = job.end_time;
  return overrun;
}

std::optional<Overrun> overrun_to_come(const Job& job, const JobLease& lease, TimePoint now) {
  if (!job.is_configuring || !job.holds_nodes()) return std::nullopt;
  if (job.time_limit && now + *job.time_limit <= lease.ends) return std::nullopt;
  return Overrun{.ends = lease.ends,
                 .time_limit = std::nullopt,
                 .is_requeued = job.is_batch && job.may_requeue,
                 .limit_to_come = job.time_limit};
}

bool is_warning_due(const Round& round, const Job& job, const JobLease& lease) {
  const Seconds before = round.config.nodesets[lease.nodeset].lease_warning;
  return before > Seconds{0} && job.is_running && round.shot.now >= lease.ends - before &&
         overrun_of(job, lease).has_value();
}

Seconds fence_lead(const SlurmSettings& settings, Seconds over_time_limit) {
  constexpr Seconds kEpilog{60};
  return kLimitTick + over_time_limit + settings.kill_wait + kEpilog;
}

OverTimeLimits::OverTimeLimits(const Snapshot& shot) : global_(shot.settings.over_time_limit) {
  const auto& partitions = shot.partitions.items;
  const bool is_same = std::all_of(partitions.begin(), partitions.end(), [&](const auto& each) {
    return each.over_time_limit.value_or(global_) == global_;
  });
  if (is_same) return;
  for (const Partition& partition : partitions) {
    const Seconds limit = partition.over_time_limit.value_or(global_);
    for (const NodeName& node : partition.nodes) {
      Seconds& known = own_.try_emplace(node, limit).first->second;
      known = std::max(known, limit);
    }
  }
}

Seconds OverTimeLimits::of(const NodeName& node) const {
  const auto found = own_.find(node);
  return found == own_.end() ? global_ : found->second;
}

Seconds drain_lead(const Config& config) {
  constexpr Seconds kMinute{60};
  const Seconds interval = config.sweeper.interval;
  return std::max(2 * interval, std::min(kMinute, 4 * interval));
}

}  // namespace flex
