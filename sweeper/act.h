// SPDX-License-Identifier: GPL-2.0-or-later
// Carries actions out: Compute Engine first, all calls side by side; then Slurm, where everything
// is checked once more against slurmctld's present state.
#pragma once

#include "lib/config/config.h"
#include "lib/core/log.h"
#include "lib/fleet/history.h"
#include "lib/gce/cloud.h"
#include "lib/provision/asked_nodes.h"
#include "lib/slurm/scheduler.h"
#include "resume/apply.h"
#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/snapshot.h"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace flex {

/// What was asked of Compute Engine, and what it said: jobs that cannot be served are given back.
struct Asked {
  Demand demand{};
  ResumePlan plan{};
  std::vector<RequestOutcome> outcomes{};
};

struct Actor {
  const Config& config;
  const Snapshot& shot;
  Cloud& cloud;
  Scheduler& scheduler;
  Memory& memory;
  const Log& log;
  std::string serial_dir{};           ///< where serial logs are kept; empty: nowhere
  std::function<bool()> should_stop;  ///< asked between actions
  Asked asked{};
  /// Their request could not be cancelled because it is just being served.
  std::unordered_set<NodeName> served{};
  /// Where what counts for max_nodes is written down before it is asked for; null: nowhere.
  AskedFile* asked_file = nullptr;
  /// Takes what was done, soon after it has been done, for the history; may be empty.
  std::function<void(std::vector<Event>)> tell{};
};

/// What became of an action.
struct Outcome {
  std::string result = "skipped";  ///< or "done", "again", "failed"; of its parts the worst
  std::string error{};

  /// The result of another part of it.
  void add(std::string_view part, const std::string& why);
};

struct ActReport {
  std::size_t done = 0;
  std::size_t failed = 0;
  /// Right moment missed (a request that is being served, a node that has changed): looked at again
  /// in the next round.
  std::size_t again = 0;
  std::vector<NodeName> waking{};   ///< not taken down yet: slurmctld is about to wake them
  std::size_t waiting = 0;          ///< requests that are asked for when their turn comes
  std::vector<Event> events{};      ///< what was done, until it is told
  std::vector<Outcome> outcomes{};  ///< of each action, in their order
  std::unordered_map<const Action*, Outcome> known{};  ///< only while they are carried out

  /// "ok", "failed" or "again" became of the action, with the error where there is one.
  void note(const Action& action, std::string_view result, const Error& error = {});
  /// The same of a part of its nodes.
  void note(const Action& action,
            const std::vector<NodeName>& nodes,
            std::string_view result,
            const Error& error = {});
};

/// The rule and the reason of an action, for events that tell more of it.
[[nodiscard]] Event event_like(const Action& action);

/// Logs each action with its rule and why before, and each failure after.
[[nodiscard]] ActReport act(Actor& actor, const std::vector<Action>& actions);

/// The log line of an action; --dry-run prints it.
void log_action(const Log& log, const Action& action);

// ---- the two halves ----
void act_on_cloud(Actor& actor, const std::vector<Action>& actions, ActReport& report);
void act_on_slurm(Actor& actor, const std::vector<Action>& actions, ActReport& report);

}  // namespace flex
