// SPDX-License-Identifier: GPL-2.0-or-later
// The words a job's author sees in AdminComment, built in one place (pure).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/text.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Our part of an AdminComment starts with this.
inline constexpr std::string_view kNotePrefix = "flex: ";

/// `existing` with our part replaced by (or, where there is none, followed by) "flex: <text>". What
/// others wrote stays: before ours, and behind it after a bar or on another line.
[[nodiscard]] std::string with_note(std::string_view existing, std::string_view text);

/// Our part of an AdminComment, without the prefix; empty: there is none.
[[nodiscard]] std::string_view our_note(std::string_view comment);

/// The VMs may end before the job's time limit does.
[[nodiscard]] std::string note_capped(Seconds time_limit, Seconds run_duration);

/// The nodeset does not allow the run duration that the job asked for.
[[nodiscard]] std::string note_unmet_wish(Seconds wish, Seconds run_duration);

/// "no VMs: <why>; the job is held, …": after a failure that trying again would not mend.
[[nodiscard]] std::string note_refused(std::string_view why);

/// After ResumeTimeout: the request was cancelled and Slurm has put the job back in its queue.
[[nodiscard]] std::string note_resume_timeout(std::string_view nodes);

/// A job that waits in Google's queue.
struct WaitingNote {
  std::size_t vms = 0;
  std::string region{};
  TimePoint since{};
  std::uint32_t attempt = 1;
  TimePoint now{};
  std::optional<TimePoint> estimate{};  ///< Google's
  std::string reason_code{};            ///< why it still waits, as Google says
  std::string reason{};
  std::optional<TimePoint> gives_up{};  ///< when nobody waits any longer
};

/// "waiting for 16 VMs in us-central1 since 14:02 (attempt 1), Google estimates 15:20, gives up at
/// 16:02"; other reasons than a lack of capacity follow: ": quota NVIDIA_H100_GPUS is used up
/// (limit 8), …".
[[nodiscard]] std::string note_waiting(const WaitingNote& note);

/// "VMs end 2026-11-16T18:35".
[[nodiscard]] std::string note_running(TimePoint ends);

/// Whether this AdminComment says that the job's VMs are there.
[[nodiscard]] bool says_running(std::string_view comment);

/// "ignored: run=8d: too long, …": of what the job's author asked for.
[[nodiscard]] std::string note_ignored(const std::vector<std::string>& problems);

/// A job that would still run when its VMs end.
struct Overrun {
  TimePoint ends{};                       ///< of the VM that ends first
  std::optional<TimePoint> time_limit{};  ///< when the job's own time is over; empty: never
  bool is_requeued = false;               ///< false: it ends with its VMs
  /// Of a job that has yet to begin, so that the end of its time is not known.
  std::optional<Seconds> limit_to_come{};
};

/// "VMs end 2026-11-16T18:35, before the job's time limit 2026-11-16T20:00: it will be requeued
/// then; checkpoint before". Of a job that has yet to begin: "…, before the job's time limit of
/// 10:00:00 is over: …".
[[nodiscard]] std::string note_overrun(const Overrun& overrun);

/// Whether this AdminComment says so.
[[nodiscard]] bool says_overrun(std::string_view comment);

/// Its comment from the warning on: "warned: VMs end 2026-11-16T18:35, …". The same at any time, so
/// that it also tells that the job has been warned.
[[nodiscard]] std::string note_warned(const Overrun& overrun);

/// The line in its output: "flex: the VMs of this job end at 2026-11-16T18:35, in 10 minutes; …".
[[nodiscard]] std::string warning_line(const Overrun& overrun, TimePoint now);

/// The request is made anew for longer-lived VMs, because a job on its nodes needs them now.
[[nodiscard]] std::string note_longer(Seconds before, Seconds now);

/// That has been done, and it waits for those VMs.
[[nodiscard]] std::string note_lengthened(Seconds before, Seconds now);

/// Some of its VMs are there, others have not come in time: all are given back and asked for
/// together. `limit`: incomplete_timeout; none: those that are there would end too early.
[[nodiscard]] std::string note_incomplete(std::size_t there,
                                          std::size_t all,
                                          const std::optional<Seconds>& limit,
                                          bool is_requeued);

/// A failed attempt that will be followed by another.
[[nodiscard]] std::string note_next_attempt(std::uint32_t failed,
                                            TimePoint next,
                                            std::string_view why);

/// Google did not take the request; it is tried again.
[[nodiscard]] std::string note_refused_for_now(TimePoint next, std::string_view why);

/// Of several requests for its VMs one has failed, the others go on: "another request for them
/// failed: …, tried again at 14:02"; without a time: not tried again.
[[nodiscard]] std::string note_other_failed(std::string_view why,
                                            const std::optional<TimePoint>& next);

/// What becomes of a job whose VMs did not come in time.
enum class TimeoutOutcome {
  Requeued,
  Held,
  Cancelled,
  Ended,  ///< it can neither wait nor be requeued: salloc, srun, --no-requeue
};

/// It has waited for as long as the nodeset allows, or as it wanted to itself: "no VMs within
/// provision_timeout 00:30:00".
[[nodiscard]] std::string why_given_up(Seconds limit, bool is_own_limit);
/// And what becomes of it.
[[nodiscard]] std::string note_provision_timeout(Seconds limit,
                                                 bool is_own_limit,
                                                 TimeoutOutcome fate);

/// slurmctld would not let it start now, so no VM is bought for it: "no VMs: reservation course …".
[[nodiscard]] std::string note_not_eligible(std::string_view why, TimeoutOutcome fate);

/// An admin cancelled its request: "no VMs: request j12-x was cancelled by ann; held, …".
[[nodiscard]] std::string note_cancelled(std::string_view why, TimeoutOutcome fate);

/// The nodeset does not boot, or an admin has paused it.
[[nodiscard]] std::string note_stopped(std::string_view nodeset, std::string_view why);

/// slurmctld's reason why it does not take a node, and what to change so that it does: "Low
/// RealMemory (…); lower RealMemory on the NodeName line of a-0 in slurm.conf, or take a bigger
/// machine type".
[[nodiscard]] std::string with_remedy(std::string_view reason, std::string_view nodes);
/// The job's VMs came, and slurmctld did not take them.
[[nodiscard]] std::string note_boot_refused(std::string_view complaint, bool is_requeued);

/// A running job lost VMs.
[[nodiscard]] std::string note_vm_gone(std::string_view nodes,
                                       std::string_view why,
                                       bool is_requeued);

/// Its time was over when it lost these nodes: it is not run again.
[[nodiscard]] std::string note_time_over(std::string_view nodes);

/// A job that waits until there is room for its request.
struct TurnNote {
  std::string why{};
  std::size_t before = 0;  ///< jobs that wait longer
  TimePoint since{};
  TimePoint now{};
};

/// "waiting for its turn: 100 of 100 requests of region us-central1 are in use, 12 jobs are before
/// it (since 14:02)".
[[nodiscard]] std::string note_turn(const TurnNote& note);

/// Local time, as Slurm writes it: "2026-11-16T18:35".
[[nodiscard]] std::string local_time(TimePoint time);

}  // namespace flex
