// SPDX-License-Identifier: GPL-2.0-or-later
// Ways that are not tried, for those who wait: one that has failed beside another that goes on is
// tried again after a pause, and then after longer ones; one whose zone can never serve, or that an
// admin has cancelled, not as long as they wait.
#include "lib/gce/errors.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {

namespace {

/// The node waits for its VM.
bool is_waiting(const NodePicture& node) {
  return node.is_coming_up() && node.is_awaited() && !node.has_vm();
}

std::uint32_t restarts_of(const NodePicture& node) {
  return node.jobs.empty() || node.is_static ? 0 : node.jobs.front()->restart_count;
}

/// Those who wait, each with one of the nodes.
std::map<std::string, const NodePicture*> find_waiters(const Round& round) {
  std::map<std::string, const NodePicture*> waiters;
  for (const NodePicture& node : round.picture.nodes()) {
    if (is_waiting(node)) waiters.emplace(waiter_of(round, node), &node);
  }
  return waiters;
}

std::string key_of(const CancelledWay& cancelled) {
  return fmt::format(
      "{}/{} {}", cancelled.group, cancelled.request, cancelled.since.time_since_epoch().count());
}

/// Each is taken up once: for the wait in which it was cancelled.
void heed_admins(Round& round, const std::map<std::string, const NodePicture*>& waiters) {
  std::set<std::string> known;
  for (const CancelledWay& cancelled : round.shot.cancelled) {
    const std::string key = key_of(cancelled);
    known.insert(key);
    if (round.memory.heeded.contains(key)) continue;
    const auto waiter = waiters.find(cancelled.waiter);
    if (waiter == waiters.end() || restarts_of(*waiter->second) != cancelled.restart_count)
      continue;
    round.memory.heeded.insert(key);
    ShutWays& shut = round.memory.shut[cancelled.waiter];
    shut.restart_count = cancelled.restart_count;
    shut.ways[cancelled.group] = {
        .next = kNotThisWait,
        .why = fmt::format("request {} was cancelled by {}", cancelled.request, cancelled.by)};
  }
  std::erase_if(round.memory.heeded, [&](const auto& key) { return !known.contains(key); });
}

}  // namespace

void remember_shut(Round& round) {
  if (round.memory.shut.empty() && round.shot.cancelled.empty()) return;
  const auto waiters = find_waiters(round);
  // The next wait is another one.
  std::erase_if(round.memory.shut, [&](const auto& entry) {
    const auto waiter = waiters.find(entry.first);
    return waiter == waiters.end() || restarts_of(*waiter->second) != entry.second.restart_count;
  });
  heed_admins(round, waiters);
}

void shut_failed(Memory& memory, const FailedWay& failed, TimePoint now) {
  ShutWays& shut = memory.shut[failed.waiter];
  shut.restart_count = failed.restart_count;
  ShutWay& way = shut.ways[failed.group];
  ++way.failures;
  way.why = failed.error.what;
  way.next =
      is_of_zone(failed.error) ? kNotThisWait : now + pause_after(failed.policy, way.failures);
}

std::set<std::pair<NodeName, MigName>> shut_for(const Round& round,
                                                const std::vector<NodeName>& nodes) {
  std::set<std::pair<NodeName, MigName>> closed;
  if (round.memory.shut.empty()) return closed;
  for (const NodeName& name : nodes) {
    const NodePicture* const node = round.picture.find(name);
    if (node == nullptr) continue;
    const auto shut = round.memory.shut.find(waiter_of(round, *node));
    if (shut == round.memory.shut.end()) continue;
    for (const auto& [group, way] : shut->second.ways) {
      if (way.next > round.shot.now) closed.emplace(name, group);
    }
  }
  return closed;
}

bool is_shut_out(const Round& round, const Turn& turn) {
  if (shut_for(round, turn.nodes).empty()) return false;
  const AskForNodes ask = plan_for(round, {&turn}, turn.options);
  return ask.plan.groups.empty() && ask.plan.refusals.empty();
}

const ShutWay* failed_way(const Round& round, const NodePicture& node) {
  const auto shut = round.memory.shut.find(waiter_of(round, node));
  if (shut == round.memory.shut.end()) return nullptr;
  for (const auto& [group, way] : shut->second.ways) {
    if (way.failures > 0 && way.next > round.shot.now) return &way;
  }
  return nullptr;
}

}  // namespace flex
