// SPDX-License-Identifier: GPL-2.0-or-later
// Where Slurm's releases differ: the only file that asks for SLURM_VERSION_NUMBER.
#pragma once

#include "lib/core/names.h"

#include <slurm/slurm.h>

#include <cstdlib>
#include <sys/types.h>

// The configuration that slurm_init read. Exported by every release from 22.05 to 26.05, declared
// by none. Weak, so that a release that drops it still links; callers test the address.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming): libslurm's own name
[[gnu::weak]] extern slurm_conf_t slurm_conf;
// For what a release hands out from Slurm's own heap; exported and not declared, as above.
[[gnu::weak]] void slurm_xfree(void** block);
}

namespace flex::slurm {

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
inline slurm_step_id_t to_step_id(JobId job) {
  slurm_step_id_t id{};
  id.job_id = job;
  id.step_het_comp = NO_VAL;
  id.step_id = NO_VAL;
  return id;
}

inline int load_job(job_info_msg_t** answer, JobId job, std::uint16_t flags) {
  return slurm_load_job(answer, to_step_id(job), flags);
}

inline int requeue(JobId job, std::uint32_t flags) {
  return slurm_requeue(to_step_id(job), flags);
}

inline int notify_job(JobId job, char* text) {
  return slurm_notify_job(to_step_id(job), text);
}

inline void set_job_id(job_desc_msg_t& message, JobId job) {
  message.step_id = to_step_id(job);
}

inline JobId job_id(const slurm_job_info_t& job) {
  return job.step_id.job_id;
}

inline void free_conf(slurm_conf_t* conf) {
  slurm_free_conf(conf);
}

/// What slurm_create_reservation returned.
inline void free_reservation_name(char* name) {
  void* block = name;
  if (&slurm_xfree != nullptr) slurm_xfree(&block);
}

/// slurmctld takes the sender's.
inline void set_reason_uid(update_node_msg_t& /*message*/, uid_t /*uid*/) {}
#else
inline int load_job(job_info_msg_t** answer, JobId job, std::uint16_t flags) {
  return slurm_load_job(answer, job, flags);
}

inline int requeue(JobId job, std::uint32_t flags) {
  return slurm_requeue(job, flags);
}

inline int notify_job(JobId job, char* text) {
  return slurm_notify_job(job, text);
}

inline void set_job_id(job_desc_msg_t& message, JobId job) {
  message.job_id = job;
}

inline JobId job_id(const slurm_job_info_t& job) {
  return job.job_id;
}

inline void free_conf(slurm_conf_t* conf) {
  slurm_free_ctl_conf(conf);
}

/// What slurm_create_reservation returned.
inline void free_reservation_name(char* name) {
  std::free(name);
}

inline void set_reason_uid(update_node_msg_t& message, uid_t uid) {
  message.reason_uid = uid;
}
#endif

/// The release whose libslurm this is: its ABI is that of one release.
inline constexpr int kReleaseYear = SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER);
inline constexpr int kReleaseMonth = SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER);
inline constexpr int kReleasePatch = SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER);

/// The first release that takes a ResumeTimeout of 65535 for infinite; to those before it is a
/// number of seconds.
inline constexpr int kInfiniteSinceYear = 25;
inline constexpr int kInfiniteSinceMonth = 5;
inline constexpr bool kKnowsInfinite =
    SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(kInfiniteSinceYear, kInfiniteSinceMonth, 0);

/// The job's --extra, or null.
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 2, 0)
inline const char* job_extra(const slurm_job_info_t& job) {
  return job.extra;
}
#else
inline const char* job_extra(const slurm_job_info_t& /*job*/) {
  return nullptr;
}
#endif

}  // namespace flex::slurm
