// SPDX-License-Identifier: GPL-2.0-or-later
// Nodesets that an admin has paused: nothing is asked for there until they are resumed. The wish is
// kept in <state_dir>/paused.json, and shows in Slurm as drained nodes, as a nodeset does that the
// breaker has stopped.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/slurm/scheduler.h"

#include <map>
#include <string>
#include <string_view>

namespace flex {

struct Pause {
  std::string by{};
  std::string reason{};  ///< may be empty
  TimePoint since{};

  friend bool operator==(const Pause&, const Pause&) = default;

  /// "paused by ann: a new image".
  [[nodiscard]] std::string why() const;
};

using Pauses = std::map<std::string, Pause>;  ///< by nodeset

[[nodiscard]] std::string to_text(const Pauses& pauses);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<Pauses> parse_pauses(std::string_view text);

[[nodiscard]] std::string pauses_path(const std::string& state_dir);
/// None if there is no file. Denied, Retry or Invalid: what was known before goes on.
[[nodiscard]] Result<Pauses> load_pauses(const std::string& state_dir);
/// One writer at a time.
[[nodiscard]] Result<Done> write_pauses(const std::string& state_dir, const Pauses& pauses);

// ---- how it shows in Slurm ----

/// What the reasons of nodes begin with that are drained because their nodeset is stopped.
[[nodiscard]] std::string stop_mark(std::string_view nodeset);
[[nodiscard]] std::string pause_reason(std::string_view nodeset, const Pause& pause);
/// Drained because the nodeset is stopped, by the breaker or by an admin.
[[nodiscard]] bool is_stop_drained(const Node& node, std::string_view nodeset);
/// Why, as such a reason says.
[[nodiscard]] std::string why_stopped(const Node& node, std::string_view nodeset);
/// Off and free.
[[nodiscard]] bool is_off(const Node& node);

/// What takes the drain from a node that is off. UNDRAIN would make slurmctld wait for an answer of
/// it, and after a restart give it to no job (is_unusable).
[[nodiscard]] constexpr NodeRequest undrain_of_off() {
  return NodeRequest::Idle;
}

/// A pause drains it: it is off, or up. What is on its way belongs to a job that goes on; what runs
/// on it goes on, too.
[[nodiscard]] bool is_to_drain(const Node& node);

}  // namespace flex
