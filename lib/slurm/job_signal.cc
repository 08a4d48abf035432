// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/job_signal.h"

#include "lib/slurm/convert.h"
#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"

#include <fmt/format.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <csignal>
#include <span>

namespace flex::slurm {
namespace {

struct Target {
  std::string id{};
  bool is_batch = false;
  bool is_task = false;       ///< of an array
  bool is_reachable = false;  ///< by a signal, now
  JobId leader = 0;           ///< of the heterogeneous job that it is part of; 0: it is none
};

Result<Target> find_target(JobId wanted, std::string_view doing) {
  job_info_msg_t* raw = nullptr;
  errno = 0;
  const auto loaded = to_result(load_job(&raw, wanted, SHOW_ALL | SHOW_LOCAL), doing);
  const JobInfoPtr answer(raw);
  if (!loaded) return loaded.error();
  for (const auto& job : std::span(answer->job_array, answer->record_count)) {
    if (job_id(job) != wanted) continue;
    const bool is_running = (job.job_state & JOB_STATE_BASE) == JOB_RUNNING;
    return Target{.id = to_signal_target(wanted, job),
                  .is_batch = job.batch_flag != 0,
                  .is_task = job.array_task_id != NO_VAL,
                  .is_reachable = is_running && (job.job_state & JOB_CONFIGURING) == 0,
                  .leader = job.het_job_id};
  }
  return to_error(ESLURM_INVALID_JOB_ID, doing);
}

Result<Done> send(const Target& target,
                  std::uint16_t signal,
                  std::uint16_t flags,
                  std::string_view doing) {
  errno = 0;
  return to_result(slurm_kill_job2(target.id.c_str(), signal, flags, nullptr), doing);
}

/// As send(), for a job that runs and goes on.
Result<Done> send_on(
    const Target& target, JobId job, int signal, std::uint16_t flags, std::string_view doing) {
  const auto sent = send(target, static_cast<std::uint16_t>(signal), flags, doing);
  if (sent || !may_have_arrived(sent.error(), target.is_task)) return sent;
  const auto now = find_target(job, doing);
  return now && now->is_reachable ? Result<Done>{Done{}} : sent;
}

}  // namespace

bool may_have_arrived(const Error& error, bool is_task) {
  return is_task && error.code == "ESLURM_TRANSITION_STATE_NO_UPDATE";
}

std::string to_signal_target(JobId id, const slurm_job_info_t& job) {
  if (job.array_task_id != NO_VAL) return fmt::format("{}_{}", job.array_job_id, job.array_task_id);
  if (job.het_job_id != 0) return fmt::format("{}+{}", job.het_job_id, job.het_job_offset);
  return std::to_string(id);
}

Result<Done> signal_job(JobId job, int signal) {
  const std::string doing = fmt::format("sending signal {} to job {}", signal, job);
  const auto target = find_target(job, doing);
  if (!target) return target.error();
  // slurmctld takes one for a job that waits for its nodes, too, and it is lost.
  if (!target->is_reachable) return to_error(ESLURM_JOB_NOT_RUNNING, doing);
  // Without a flag it goes to the tasks of all steps but not to the batch script, with this flag
  // to the script and its children but not to the steps.
  if (auto sent = send_on(*target, job, signal, 0, doing); !sent || !target->is_batch) return sent;
  return send_on(*target, job, signal, KILL_FULL_JOB, doing);
}

Result<Done> cancel_job(JobId job) {
  const std::string doing = fmt::format("cancelling job {}", job);
  auto target = find_target(job, doing);
  if (!target) return target.error();
  if (target->leader != 0) target->id = std::to_string(target->leader);
  return send(*target, SIGKILL, 0, doing);
}

}  // namespace flex::slurm
