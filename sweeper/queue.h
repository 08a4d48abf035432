// SPDX-License-Identifier: GPL-2.0-or-later
// Whose turn it is: a region takes only so many requests at once, and a nodeset only so many nodes.
// Who waits longest is asked for first; the others wait here, and no job fails for it.
#pragma once

#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flex {

/// Nodes to be asked for together: what a job lacks, or one node that has no job.
struct Turn {
  Rule rule = Rule::UnrequestedNode;
  std::string why{};  ///< of the action
  std::vector<NodeName> nodes{};
  JobId job = 0;  ///< 0: none
  PlanOptions options{};
  TimePoint since{};      ///< it waits since
  bool is_ready = true;   ///< false: it keeps its place, but is not asked for in this round
  bool is_extra = false;  ///< a request is out already: those without one come first
};

/// Longest waiting first; equal ones by job, so that the order does not change from round to round.
[[nodiscard]] bool is_before(const Turn& left, const Turn& right);

/// Requests of ours that count for Google's quota.
[[nodiscard]] std::size_t count_active_requests(const Snapshot& shot);

/// How many requests may be made now: what the config allows beside the `active` ones. Where Google
/// has refused one before that: as many as have become free since, and a few more to find out.
[[nodiscard]] std::size_t room_for_requests(std::size_t most,
                                            const RequestQuota& quota,
                                            std::size_t active);

/// What became of a round's requests.
struct TurnsTaken {
  std::size_t active = 0;   ///< before
  std::size_t taken = 0;    ///< by Google
  std::size_t refused = 0;  ///< because too many are active
};

/// After a refusal there is room for no more than there are now. From then on one more is tried in
/// a round, then two, four, … until the next refusal: others may have left the region.
void learn(RequestQuota& quota, const TurnsTaken& turns, std::size_t most);

}  // namespace flex
