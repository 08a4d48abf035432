// SPDX-License-Identifier: GPL-2.0-or-later
// For whom a node comes up. slurmctld does not say who has sent a POWER_UP, so what was seen before
// must do. A node that was off and comes up without a job is an admin's wish. These are not:
// - a node that came up for a job, which is gone since;
// - a node that powers down with its POWER_UP flag set. slurmctld wakes it when it is off. Nobody
//   can want that: it ignores a POWER_UP for a node that powers down, so the flag is older.
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <algorithm>

namespace flex {

namespace {

bool is_for_job(const NodePicture& node) {
  return !node.jobs.empty() ||
         std::any_of(node.requests.begin(), node.requests.end(), [](const auto& request) {
           return request_job(*request) != 0;
         });
}

bool has_flag_left(const Node& node) {
  return is_power_up_requested(node) && (is_powering_down(node) || is_power_down_requested(node));
}

bool is_over(const Node& node) {
  const bool is_off = is_powered_down(node) && !is_power_up_requested(node) &&
                      !is_powering_up(node) && is_idle(node);
  return is_off || is_up(node);
}

}  // namespace

void remember_wakes(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || node.is_static) continue;
    if (has_flag_left(*node.node) || (node.is_coming_up() && is_for_job(node)))
      round.memory.woken.insert(node.name);
    else if (is_over(*node.node))
      round.memory.woken.erase(node.name);
  }
}

bool comes_for_nobody(const Round& round, const NodePicture& node) {
  return node.jobs.empty() && !node.is_static && node.is_coming_up() && !node.has_vm() &&
         round.memory.woken.contains(node.name);
}

}  // namespace flex
