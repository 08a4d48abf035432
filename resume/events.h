// SPDX-License-Identifier: GPL-2.0-or-later
// What the history is told of what was asked of Compute Engine (pure). The sweeper asks the same
// way, so it tells the same.
#pragma once

#include "lib/fleet/history.h"
#include "resume/apply.h"

#include <vector>

namespace flex {

/// slurmctld wants these nodes: "asked", one for each job, and one for nodes without a job.
[[nodiscard]] std::vector<Event> asked_events(const Event& like, const Demand& demand);

/// "requested", "requested_before", "left_to_sweeper" or "not_requested". `like`: what all of a
/// program's events have in common, time and program at least.
[[nodiscard]] Event event_of(const Event& like, const RequestOutcome& outcome);
[[nodiscard]] Event event_of(const Event& like, const Refusal& refusal);

/// A request was given up, or could not be: "cancel_request".
[[nodiscard]] Event event_of(const Event& like, const CancelOutcome& outcome);

/// Nothing was asked for because others wait longer: "left_to_sweeper" for each job concerned.
[[nodiscard]] std::vector<Event> left_events(const Event& like,
                                             const Demand& demand,
                                             const std::vector<NodeName>& left,
                                             const std::string& why);

/// Nodes, and their job if there is one, that Slurm has got back: "given_back".
[[nodiscard]] Event given_back_event(const Event& like,
                                     JobId job,
                                     const std::vector<NodeName>& nodes,
                                     const std::string& why);
/// Those of what cannot be served.
[[nodiscard]] std::vector<Event> given_back_events(const Event& like,
                                                   const std::vector<Refusal>& refusals,
                                                   const std::vector<RequestOutcome>& outcomes);

/// Google has no room for the request, or the nodeset for the nodes: no failure.
[[nodiscard]] bool waits_for_turn(const Error& error);

}  // namespace flex
