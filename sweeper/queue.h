// SPDX-License-Identifier: GPL-2.0-or-later
// What the rules want to ask for. Whose turn it is the admission says (lib/provision/admission.h);
// the others wait here, and no job fails for it.
#pragma once

#include "lib/provision/admission.h"
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

/// What the admission knows of it without its plan.
[[nodiscard]] PendingAsk to_ask(const Turn& turn);
[[nodiscard]] bool is_before(const Turn& left, const Turn& right);

/// Requests of ours that count for Google's quota.
[[nodiscard]] std::size_t count_active_requests(const Snapshot& shot);

}  // namespace flex
