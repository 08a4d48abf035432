// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/decide.h"

#include "sweeper/rules.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// What is wrong comes first, then what is missing, then what is left over, then what is told. A
/// node that one rule has taken up is left alone by those after it.
constexpr void (*kRules[])(Round&) = {
    unbacked_node,
    provision_timeout,
    stale_request,
    failed_request,
    boot_timeout,
    orphan_instance,
    unrequested_node,
    static_node,
    keep_waiting,
    finished_request,
    empty_mig,
    job_note,
};

JobId job_of_key(const std::string& key) {
  JobId job = 0;
  if (key.size() < 2 || key.front() != 'j') return 0;
  const auto [end, status] = std::from_chars(key.data() + 1, key.data() + key.size(), job);
  return status == std::errc{} && end == key.data() + key.size() ? job : 0;
}

/// What is remembered of jobs and nodes that are over.
void forget_gone(Memory& memory, const Config& config, const Snapshot& shot) {
  std::unordered_set<JobId> alive;
  for (const Job& job : shot.jobs.items) {
    if (!job.is_finished) alive.insert(job.id);
  }
  std::erase_if(memory.notes, [&](const auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(memory.retries, [&](const auto& entry) {
    if (const JobId job = job_of_key(entry.first); job != 0) return !alive.contains(job);
    return config.find({entry.first}) == nullptr;
  });
  const auto is_unknown = [&](const auto& entry) { return config.find(entry.first) == nullptr; };
  std::erase_if(memory.raised, is_unknown);
  std::erase_if(memory.armed, is_unknown);
  std::erase_if(memory.lease_ends, is_unknown);
}

}  // namespace

Decision decide(const Config& config, const Snapshot& shot, Memory& memory) {
  const Picture picture{config, shot};
  constexpr Seconds kShortest{600};
  memory.longest_gap = std::max(kShortest, 4 * config.sweeper.interval);
  if (shot.now - memory.last_round > memory.longest_gap) memory.last_round = {};
  ++memory.round;
  Round round{config, shot, picture, memory};
  for (const auto& rule : kRules) rule(round);
  memory.forget_unseen();
  forget_gone(memory, config, shot);
  memory.last_round = shot.now;
  return {.actions = std::move(round.actions), .postponed = round.postponed()};
}

}  // namespace flex
