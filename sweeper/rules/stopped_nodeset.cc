// SPDX-License-Identifier: GPL-2.0-or-later
// A nodeset that is stopped, by the breaker (boot_timeout) or by an admin (flexctl pause): its
// nodes are drained, which Slurm's users see, and nothing is asked for. What was asked for before
// goes on. The breaker's stop is over when an admin undrains one of the nodes, a pause when it is
// taken back.
#include "lib/core/job_note.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

bool is_drained_by_us(const NodePicture& node, const NodesetConfig& nodeset) {
  return node.node != nullptr && is_stop_drained(*node.node, nodeset.name);
}

/// True if an admin has cleared the breaker's stop.
bool is_cleared(const Round& round, const Stopped& stopped) {
  return std::any_of(stopped.drained.begin(), stopped.drained.end(), [&](const NodeName& name) {
    const NodePicture* node = round.picture.find(name);
    return node != nullptr && node->node != nullptr && !is_draining(*node->node);
  });
}

/// Undrains the rest. Over only when none is drained by us any more: an undrain that was not
/// carried out must not stop the nodeset again.
void start_again(Round& round, Rule rule, const NodesetConfig& nodeset) {
  std::vector<NodeName> drained;
  for (const NodeName& name : nodeset.nodes) {
    const NodePicture& node = *round.picture.find(name);
    if (is_drained_by_us(node, nodeset)) drained.push_back(name);
  }
  round.memory.boot_failures.erase(nodeset.name);
  if (drained.empty()) {
    round.memory.stopped.erase(nodeset.name);
    return;
  }
  round.memory.stopped[nodeset.name].is_clearing = true;
  round.claim(drained);
  round.add(
      rule,
      fmt::format("nodeset {} was cleared by an admin", nodeset.name),
      UpdateNodes{.request = NodeRequest::Undrain, .nodes = std::move(drained), .reason = {}});
}

/// Which nodes are to be drained, and which are given back because nobody asks for them now.
struct Held {
  std::vector<NodeName> to_drain{};
  std::vector<NodeName> waiting{};
};

Held find_held(Round& round, const NodesetConfig& nodeset, Stopped& stopped) {
  Held held;
  for (const NodeName& name : nodeset.nodes) {
    const NodePicture& node = *round.picture.find(name);
    if (node.node == nullptr || !round.is_free(name)) continue;
    const bool is_free_and_off = is_off(*node.node) && node.jobs.empty();
    // Powering down takes a drain away: only of one that is off can it be said that an admin did.
    if (is_drained_by_us(node, nodeset)) {
      if (is_free_and_off)
        stopped.drained.insert(name);
      else
        stopped.drained.erase(name);
    }
    const bool is_wanted =
        stopped.is_paused ? is_to_drain(*node.node) : is_free_and_off && !is_draining(*node.node);
    if (is_wanted) held.to_drain.push_back(name);
    if (is_unserved(node)) held.waiting.push_back(name);
  }
  return held;
}

/// Keeps a stopped nodeset stopped: drains what has become free, gives back what waits for nothing.
void hold(Round& round,
          Rule rule,
          const NodesetConfig& nodeset,
          Stopped& stopped,
          const std::string& reason) {
  Held held = find_held(round, nodeset, stopped);
  if (!held.to_drain.empty()) {
    round.claim(held.to_drain);
    round.add(
        rule,
        fmt::format("nodeset {} is stopped: {}", nodeset.name, stopped.why),
        UpdateNodes{
            .request = NodeRequest::Drain, .nodes = std::move(held.to_drain), .reason = reason});
  }
  if (held.waiting.empty()) return;
  round.claim(held.waiting);
  for (const Job* job : jobs_on(round.picture, held.waiting))
    tell(round, rule, stopped.why, *job, note_stopped(nodeset.name, stopped.why));
  round.add(rule,
            fmt::format("nodeset {} is stopped and nothing is asked for", nodeset.name),
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(held.waiting),
                        .reason = stop_mark(nodeset.name) + stopped.why});
}

/// After a loss of memory: what we drained says so itself.
void remember_stopped(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    const NodesetConfig& nodeset = round.nodeset_of(node);
    if (!is_drained_by_us(node, nodeset) || round.memory.stopped.contains(nodeset.name)) continue;
    Stopped& stopped = round.memory.stopped[nodeset.name];
    stopped.why = why_stopped(*node.node, nodeset.name);
    if (is_off(*node.node)) stopped.drained.insert(node.name);
  }
}

void watch(Round& round, const NodesetConfig& nodeset) {
  if (const auto pause = round.shot.pauses.find(nodeset.name); pause != round.shot.pauses.end()) {
    Stopped& stopped = round.memory.stopped[nodeset.name];
    stopped.why = pause->second.why();
    stopped.is_paused = true;
    stopped.is_clearing = false;
    return hold(round, Rule::Pause, nodeset, stopped, pause_reason(nodeset.name, pause->second));
  }
  const auto found = round.memory.stopped.find(nodeset.name);
  if (found == round.memory.stopped.end()) return;
  Stopped& stopped = found->second;
  if (stopped.is_paused && !round.shot.are_pauses_known)
    return hold(round, Rule::Pause, nodeset, stopped, stop_mark(nodeset.name) + stopped.why);
  if (stopped.is_paused) return start_again(round, Rule::Pause, nodeset);
  if (stopped.is_clearing || is_cleared(round, stopped))
    return start_again(round, Rule::BootTimeout, nodeset);
  hold(round,
       Rule::BootTimeout,
       nodeset,
       stopped,
       fmt::format("{}{}; mend it, then: scontrol update NodeName={} State=UNDRAIN",
                   stop_mark(nodeset.name),
                   stopped.why,
                   nodeset.nodes.front()));
}

}  // namespace

void watch_stopped(Round& round) {
  remember_stopped(round);
  for (const NodesetConfig& nodeset : round.config.nodesets) watch(round, nodeset);
}

}  // namespace flex
