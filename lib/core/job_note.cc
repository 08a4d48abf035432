// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"

#include "lib/core/duration.h"

#include <fmt/format.h>

namespace flex {

std::string with_note(std::string_view existing, std::string_view text) {
  std::string note = fmt::format("{}{}", kNotePrefix, text);
  if (existing.empty()) return note;
  // Ours is the last part: either the whole comment or what follows " | ".
  if (existing.substr(0, kNotePrefix.size()) == kNotePrefix) return note;
  const std::string separator = fmt::format(" | {}", kNotePrefix);
  const std::size_t at = existing.rfind(separator);
  const std::string_view others = existing.substr(0, at);
  return fmt::format("{} | {}", others, note);
}

std::string note_capped(Seconds time_limit, Seconds run_duration) {
  return fmt::format(
      "time limit {} capped: VMs live at most {} from their start, save your work before that",
      format_slurm_time(time_limit),
      format_slurm_time(run_duration));
}

std::string note_refused(std::string_view why) {
  return fmt::format(
      "no VMs: {}. Held so that it does not loop; ask your admin, then 'scontrol release' it", why);
}

std::string note_resume_timeout(std::string_view nodes) {
  return fmt::format(
      "no VMs for {} within Slurm's ResumeTimeout; the request was cancelled and the job requeued",
      nodes);
}

}  // namespace flex
