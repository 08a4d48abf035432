// SPDX-License-Identifier: GPL-2.0-or-later
// keep_waiting: Google's queue may take days, slurmctld's ResumeTimeout at most 18 hours before
// Slurm 25.05. POWER_UP on a node that is powering up starts slurmctld's clock anew, and its job
// stays where it is. Never with a VM there: slurmctld ignores the registration of a VM that booted
// before the last POWER_UP.
#include "lib/core/duration.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"
#include "sweeper/seen_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

namespace flex {

namespace {

bool is_waiting(const Round& round, const NodePicture& node) {
  if (node.node == nullptr || !is_powering_up(*node.node) || is_power_up_requested(*node.node) ||
      is_powered_down(*node.node))
    return false;
  if (node.has_vm() || (node.entry && node.entry->is_leaving())) return false;
  const bool is_unwanted = !node.is_awaited() && is_power_down_requested(*node.node);
  if (node.is_asked_for()) return !is_unwanted;
  // Without a request it waits for the next attempt, or for its turn.
  if (round.memory.retries.contains(node.name)) return true;
  const Sighting* const seen = round.memory.find(to_string(Rule::UnrequestedNode), node.name.text);
  return node.is_awaited() && seen != nullptr && seen->is_twice() && !round.is_stopped(node);
}

/// A node of a nodeset that was never seen whole since the sweeper's start. Its job waits for it,
/// and what is remembered does not say that it has a VM. A VM that came unseen has either
/// registered, then slurmctld is not bringing the node up any more, or it is booting: then the
/// POWER_UP makes slurmctld ignore it, and the node waits for as long again. That is rare, for a
/// boot takes minutes and the wait has taken most of ResumeTimeout. Not to wind the clock up loses
/// the place of every job that waits.
bool may_be_waiting(const Round& round, const NodePicture& node) {
  if (node.node == nullptr || !is_powering_up(*node.node) || is_power_up_requested(*node.node) ||
      is_powered_down(*node.node) || is_power_down_requested(*node.node))
    return false;
  const auto end = round.memory.lease_ends.find(node.name);
  const bool had_vm = end != round.memory.lease_ends.end() && end->second.ends > round.shot.now;
  return node.is_awaited() && !had_vm && !round.is_stopped(node);
}

/// When slurmctld began to bring up a node of which nothing is remembered: when its first job got
/// it, as far as anybody can say.
TimePoint first_wanted(const Round& round, const NodePicture& node) {
  if (node.jobs.empty()) return {};
  const auto first =
      std::min_element(node.jobs.begin(), node.jobs.end(), [](const Job* left, const Job* right) {
        return left->start_time < right->start_time;
      });
  return std::min((*first)->start_time, round.shot.now);
}

/// Whether `part` of `whole` of the node's ResumeTimeout is over.
struct Share {
  int part;
  int whole;
};

template <class IsWaitingNode>
std::vector<NodeName> find_near(
    Round& round, Share share, bool is_blind, const IsWaitingNode& waits, Seconds& shortest) {
  std::vector<NodeName> near;
  // A round that did not see some nodesets says nothing of their nodes.
  const TimePoint last_seen = round.shot.unseen.empty() ? round.memory.last_round : TimePoint{};
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !is_powering_up(*node.node)) {
      round.memory.armed.erase(node.name);
      continue;
    }
    if (!node.resume_timeout) continue;
    // A node that was not powering up in the last round has begun since. Without a last round it
    // may have been at it for long: then its clock is wound up at once, if it can be seen that no
    // VM has come.
    const bool is_guess = is_blind && !round.memory.armed.contains(node.name);
    const TimePoint armed =
        is_guess ? std::max(first_wanted(round, node), last_seen)
                 : round.memory.armed.try_emplace(node.name, round.memory.last_round).first->second;
    const Seconds waited = round.shot.now - armed;
    if (!round.is_free(node.name) || !waits(node)) continue;
    if (waited < *node.resume_timeout * share.part / share.whole) continue;
    near.push_back(node.name);
    shortest = std::min(shortest, *node.resume_timeout);
  }
  return near;
}

}  // namespace

/// The clock is wound up at half time: cheap, and no long round can make it too late.
void keep_waiting(Round& round) {
  Seconds shortest = Seconds::max();
  const auto waits = [&](const NodePicture& node) { return is_waiting(round, node); };
  std::vector<NodeName> near = find_near(round, {.part = 1, .whole = 2}, false, waits, shortest);
  if (near.empty()) return;
  round.add(Rule::KeepWaiting,
            fmt::format("still waiting for its VM, and ResumeTimeout ({}) must not end that",
                        format_slurm_time(shortest)),
            UpdateNodes{.request = NodeRequest::PowerUp,
                        .nodes = std::move(near),
                        .reason = {},
                        .only_without_vm = true});
}

/// Later than with open eyes: a VM that has come since the last look has registered by then.
void keep_waiting_blindly(Round& round) {
  Seconds shortest = Seconds::max();
  const std::set<std::string> hidden = hidden_nodesets(round.config, round.shot);
  const auto waits = [&](const NodePicture& node) {
    const std::string& nodeset = round.nodeset_of(node).name;
    if (!hidden.empty() && !hidden.contains(nodeset)) return false;
    if (is_waiting(round, node)) return true;
    // It has begun since the nodeset was last seen, or the nodeset was never seen.
    const bool is_new = !node.entry && !node.is_asked_for();
    return (is_new || !round.shot.seen_once.contains(nodeset)) && may_be_waiting(round, node);
  };
  std::vector<NodeName> near = find_near(round, {.part = 3, .whole = 4}, true, waits, shortest);
  if (near.empty()) return;
  round.add(
      Rule::KeepWaiting,
      fmt::format("had no VM as far as is known, Google cannot be seen, and ResumeTimeout ({}) "
                  "is near",
                  format_slurm_time(shortest)),
      UpdateNodes{.request = NodeRequest::PowerUp, .nodes = std::move(near), .reason = {}});
}

}  // namespace flex
