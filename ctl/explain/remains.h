// SPDX-License-Identifier: GPL-2.0-or-later
// What is left of a request that is over (pure).
#pragma once

#include "ctl/explain/story.h"

#include <string>
#include <vector>

namespace flex {

/// ": it was served at 14:02:31", as the history has it.
[[nodiscard]] std::string how_it_ended(const Subject& request,
                                       const std::vector<Event>& events,
                                       TimePoint now);

/// " 2 of its VMs are there, to end at …."; empty if it is not known which VMs it had.
[[nodiscard]] std::string vms_left(const Subject& request,
                                   const std::vector<Event>& events,
                                   const Facts& facts);

/// "14:02:31 (in 2 h 13 min)".
[[nodiscard]] std::string soon_text(TimePoint time, TimePoint now);

}  // namespace flex
