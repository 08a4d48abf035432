// SPDX-License-Identifier: GPL-2.0-or-later
// What nodes, VMs and requests are doing, in one word each: for status.json and the metrics (pure).
#pragma once

#include "sweeper/snapshot.h"

#include <array>
#include <string_view>

namespace flex {

inline constexpr std::array<std::string_view, 11> kNodeWords{"allocated",
                                                             "booting",
                                                             "down",
                                                             "drained",
                                                             "draining",
                                                             "idle",
                                                             "powered_down",
                                                             "powering_down",
                                                             "unknown",
                                                             "unusable",
                                                             "waiting"};
/// "unusable": off, and slurmctld may give it to no job (is_unusable). "drained": no job gets it,
/// whether a VM is there or not; "draining": one is still on it.
[[nodiscard]] std::string_view node_word(const NodePicture& node);

inline constexpr std::array<std::string_view, 4> kVmWords{"booting", "dead", "leaving", "up"};
/// Of an entry that is not queued. `node`: of its name, may be null.
[[nodiscard]] std::string_view vm_word(const Instance& instance, const NodePicture* node);

inline constexpr std::array<std::string_view, 8> kRequestWords{"ACCEPTED",
                                                               "CANCELLED",
                                                               "CREATING",
                                                               "DELETING",
                                                               "FAILED",
                                                               "PROVISIONING",
                                                               "SUCCEEDED",
                                                               "UNKNOWN"};
[[nodiscard]] std::string_view request_word(RequestState state);

}  // namespace flex
