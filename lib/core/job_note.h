// SPDX-License-Identifier: GPL-2.0-or-later
// The words a job's author sees in AdminComment, built in one place (pure).
#pragma once

#include "lib/core/domain.h"

#include <string>
#include <string_view>

namespace flex {

/// Our part of an AdminComment starts with this.
inline constexpr std::string_view kNotePrefix = "flex: ";

/// `existing` with our part replaced by (or, where there is none, followed by) "flex: <text>". What
/// others wrote stays.
[[nodiscard]] std::string with_note(std::string_view existing, std::string_view text);

/// The VMs may end before the job's time limit does.
[[nodiscard]] std::string note_capped(Seconds time_limit, Seconds run_duration);

/// "no VMs: <why>; the job is held, …": after a failure that trying again would not mend.
[[nodiscard]] std::string note_refused(std::string_view why);

/// After ResumeTimeout: the request was cancelled and Slurm has put the job back in its queue.
[[nodiscard]] std::string note_resume_timeout(std::string_view nodes);

}  // namespace flex
