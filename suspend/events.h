// SPDX-License-Identifier: GPL-2.0-or-later
// What the history is told of what was taken away (pure). `like`: what all events of the program
// have in common, time and program.
#pragma once

#include "lib/fleet/history.h"
#include "suspend/apply.h"

#include <string>
#include <vector>

namespace flex {

/// slurmctld wants these nodes away: "suspend", or "resume_failed" after ResumeTimeout.
[[nodiscard]] Event suspend_event(const Event& like,
                                  const std::vector<NodeName>& nodes,
                                  bool is_resume_fail);

/// "cancel_request" and "delete_instances", with more.result.
[[nodiscard]] std::vector<Event> events_of(const Event& like, const SuspendOutcome& outcome);

/// Nodes that Slurm may use again: "given_back".
[[nodiscard]] Event put_back_event(const Event& like,
                                   const std::vector<NodeName>& nodes,
                                   const std::string& why);

}  // namespace flex
