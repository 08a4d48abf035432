// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/decide.h"

#include "sweeper/rules.h"
#include "sweeper/seen_part.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// What is wrong comes first, then what is missing, then what is left over, then what is told. A
/// node that one rule has taken up is left alone by those after it.
// clang-format off
constexpr void (*kRules[])(Round&) = {
    unbacked_node,
    refused_registration,
    unhealthy_node,
    lease_end,
    lease_warning,
    spent_node,
    no_longer_eligible,
    provision_timeout,
    stale_request,
    surplus_request,
    stockout,
    failed_request,
    incomplete_job,
    boot_timeout,
    orphan_instance,
    resubmit,
    race,
    unrequested_node,
    static_node,
    take_turns,
    keep_waiting,
    finished_request,
    empty_mig,
    unused_policy,
    unusable_node,
    job_note,
    node_note,
};

// clang-format on

/// What is remembered of jobs, nodes and nodesets that are over.
void forget_gone(Memory& memory,
                 const Config& config,
                 const Snapshot& shot,
                 const Picture& picture) {
  std::unordered_set<JobId> alive;
  for (const Job& job : shot.jobs.items) {
    if (!job.is_finished) alive.insert(job.id);
  }
  std::erase_if(memory.notes, [&](const auto& entry) { return !alive.contains(entry.first); });
  std::erase_if(memory.eligibility,
                [&](const auto& entry) { return !alive.contains(entry.first); });
  // Trouble is over when the VM is there, or when nobody waits for it.
  std::erase_if(memory.retries, [&](const auto& entry) {
    const NodePicture* node = picture.find(entry.first);
    return node == nullptr || node->has_vm() || !node->is_coming_up();
  });
  const auto is_unknown = [&](const auto& entry) { return config.find(entry.first) == nullptr; };
  std::erase_if(memory.raised, is_unknown);
  std::erase_if(memory.armed, is_unknown);
  std::erase_if(memory.lease_ends, is_unknown);
  std::erase_if(memory.woken, [&](const NodeName& name) { return config.find(name) == nullptr; });
  const auto is_no_nodeset = [&](const auto& entry) {
    return std::none_of(config.nodesets.begin(), config.nodesets.end(), [&](const auto& nodeset) {
      return nodeset.name == entry.first;
    });
  };
  std::erase_if(memory.stopped, is_no_nodeset);
  std::erase_if(memory.boot_failures, is_no_nodeset);
}

/// Trouble that another job had on a node, or on its way to one, is not the trouble of the job that
/// waits there now.
void forget_others(Memory& memory, const Picture& picture) {
  std::erase_if(memory.retries, [&](const auto& entry) {
    const JobId job = entry.second.job;
    const NodePicture* const node = picture.find(entry.first);
    if (job == 0 || node == nullptr) return false;
    return std::none_of(
        node->jobs.begin(), node->jobs.end(), [&](const Job* on) { return on->id == job; });
  });
}

/// A clock that was set back makes every time that is remembered worthless.
void forget_times(Memory& memory) {
  Memory kept;
  kept.stopped = std::move(memory.stopped);
  kept.boot_failures = std::move(memory.boot_failures);
  kept.drains = std::move(memory.drains);
  kept.woken = std::move(memory.woken);
  kept.warned = std::move(memory.warned);
  kept.eligibility = std::move(memory.eligibility);
  kept.worked = std::move(memory.worked);
  kept.repairs = std::move(memory.repairs);
  kept.boots = std::move(memory.boots);
  kept.loose = std::move(memory.loose);
  kept.has_policies = memory.has_policies;
  kept.round = memory.round;
  memory = std::move(kept);
}

/// What fences VMs off goes by all of them, also by those that were seen in an earlier round:
/// else a fence would fall because its VM cannot be seen.
void fence_all(const Config& config, const Snapshot& whole, Memory memory, Round& round) {
  const Picture picture{config, whole};
  Round other{config, whole, picture, memory};
  lease_end(other);
  std::move(other.actions.begin(), other.actions.end(), std::back_inserter(round.actions));
}

/// Whether a node is drained is slurmctld's matter alone.
void keep_hidden_drains(const Config& config,
                        const Snapshot& shot,
                        const std::set<std::string>& hidden,
                        Memory& memory,
                        Decision& decision) {
  const Picture picture{config, shot};
  Round round{config, shot, picture, memory};
  keep_drains(round, hidden);
  std::move(round.actions.begin(), round.actions.end(), std::back_inserter(decision.actions));
}

/// `whole` is more than `shot` where some nodesets cannot be seen.
Decision decide_on(const Config& config,
                   const Snapshot& shot,
                   const Snapshot& whole,
                   Memory& memory) {
  const Picture picture{config, shot};
  constexpr Seconds kShortest{600};
  if (shot.now < memory.last_round) forget_times(memory);
  memory.longest_gap = std::max(kShortest, 4 * config.sweeper.interval);
  if (shot.now - memory.last_round > memory.longest_gap) memory.last_round = {};
  ++memory.round;
  forget_old(memory.requests, shot.now);
  const Memory before = &shot == &whole ? Memory{} : memory;
  forget_others(memory, picture);
  Round round{config, shot, picture, memory};
  remember_wakes(round);
  remember_shut(round);
  const bool is_part = &shot != &whole;
  for (const auto& rule : kRules) {
    if (is_part && rule == lease_end)
      fence_all(config, whole, before, round);
    else
      rule(round);
  }
  memory.forget_unseen();
  forget_gone(memory, config, shot, picture);
  memory.last_round = shot.now;
  return {.actions = std::move(round.actions),
          .postponed = round.postponed(),
          .waiting = round.waiting,
          .waiting_nodesets = std::move(round.waiting_nodesets)};
}

}  // namespace

Decision decide(const Config& config, const Snapshot& shot, Memory& memory) {
  if (shot.unseen.empty()) return decide_on(config, shot, shot, memory);
  const Memory before = memory;
  const auto hidden = hidden_nodesets(config, shot);
  Decision decision = decide_on(config, without(config, shot, hidden), shot, memory);
  restore(memory, before, config, shot.cluster, hidden);
  keep_hidden_drains(config, shot, hidden, memory, decision);
  return decision;
}

Decision decide_blindly(const Config& config, const Snapshot& shot, Memory& memory) {
  const Picture picture{config, shot};
  Round round{config, shot, picture, memory};
  keep_drains(round);
  keep_waiting_blindly(round);
  return {.actions = std::move(round.actions)};
}

}  // namespace flex
