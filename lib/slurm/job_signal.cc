// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/job_signal.h"

#include "lib/slurm/convert.h"
#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"

#include <fmt/format.h>
#include <slurm/slurm_errno.h>

#include <cerrno>
#include <span>

namespace flex::slurm {
namespace {

struct Target {
  std::string id{};
  bool is_batch = false;
};

/// The job, if a signal can reach it now. slurmctld takes one for a job that waits for its nodes,
/// too, and it is lost.
Result<Target> find_target(JobId wanted, std::string_view doing) {
  job_info_msg_t* raw = nullptr;
  errno = 0;
  const auto loaded = to_result(load_job(&raw, wanted, SHOW_ALL | SHOW_LOCAL), doing);
  const JobInfoPtr answer(raw);
  if (!loaded) return loaded.error();
  for (const auto& job : std::span(answer->job_array, answer->record_count)) {
    if (job_id(job) != wanted) continue;
    const bool is_running = (job.job_state & JOB_STATE_BASE) == JOB_RUNNING;
    if (!is_running || (job.job_state & JOB_CONFIGURING) != 0) {
      return to_error(ESLURM_JOB_NOT_RUNNING, doing);
    }
    return Target{.id = to_signal_target(wanted, job), .is_batch = job.batch_flag != 0};
  }
  return to_error(ESLURM_INVALID_JOB_ID, doing);
}

}  // namespace

std::string to_signal_target(JobId id, const slurm_job_info_t& job) {
  if (job.array_task_id != NO_VAL) return fmt::format("{}_{}", job.array_job_id, job.array_task_id);
  if (job.het_job_id != 0) return fmt::format("{}+{}", job.het_job_id, job.het_job_offset);
  return std::to_string(id);
}

Result<Done> signal_job(JobId job, int signal) {
  const std::string doing = fmt::format("sending signal {} to job {}", signal, job);
  auto target = find_target(job, doing);
  if (!target) return target.error();
  const auto send = [&](std::uint16_t flags) {
    errno = 0;
    const auto number = static_cast<std::uint16_t>(signal);
    return to_result(slurm_kill_job2(target->id.c_str(), number, flags, nullptr), doing);
  };
  // Without a flag it goes to the tasks of all steps but not to the batch script, with this flag
  // to the script and its children but not to the steps.
  if (auto sent = send(0); !sent || !target->is_batch) return sent;
  return send(KILL_FULL_JOB);
}

}  // namespace flex::slurm
