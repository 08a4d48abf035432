// SPDX-License-Identifier: GPL-2.0-or-later
// What flex-resume leaves to the sweeper because others wait longer, or an admin wants it (pure).
#pragma once

#include "lib/fleet/view.h"
#include "resume/plan.h"

#include <cstddef>
#include <string>
#include <vector>

namespace flex {

/// Requests that are seen waiting.
[[nodiscard]] std::size_t count_active_requests(const FleetView& fleet);

/// Takes requests beyond `room` out of the plan, and groups that would be made only for them; their
/// nodes. What is asked for without a request needs no room.
[[nodiscard]] std::vector<NodeName> leave_beyond(ResumePlan& plan, std::size_t room);

/// Takes all that is for this nodeset out of the plan; its nodes.
[[nodiscard]] std::vector<NodeName> leave_nodeset(ResumePlan& plan, const std::string& nodeset);

}  // namespace flex
