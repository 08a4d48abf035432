// SPDX-License-Identifier: GPL-2.0-or-later
// unbacked_node: Slurm has a node up whose VM is gone (lease end, host error, deleted by hand).
// With DOWN first its job goes back to the queue at once, not after SlurmdTimeout; then POWER_DOWN
// makes the node whole again. A job whose time was over when its VM went is not run again:
// slurmctld ends it (TIMEOUT), or, where that would take too long, it is cancelled.
#include "lib/core/job_note.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/lease.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

namespace flex {

namespace {

/// So many up nodes without a VM at once, none of them at the end of its lease, and more than half
/// of all: rather a list that came back empty, or a wrong region, than the truth. Look for longer.
constexpr std::size_t kMany = 20;
constexpr Seconds kDoubt{300};

/// So long slurmctld may take to end a job whose time is over. Less than the usual SlurmdTimeout of
/// 300 s, after which slurmctld would requeue the job itself.
constexpr Seconds kTimeoutPatience{180};

bool is_gone(const NodePicture& node) {
  return !node.entry || node.entry->is_dead() || (node.entry->is_queued() && !node.has_vm());
}

bool is_at_end(const Round& round, const NodePicture& node) {
  const auto end = round.memory.lease_ends.find(node.name);
  return end != round.memory.lease_ends.end() && end->second.ends <= round.shot.now;
}

/// About when its VM went.
TimePoint went_at(const Round& round, const NodePicture& node, const Sighting& seen) {
  const auto end = round.memory.lease_ends.find(node.name);
  return is_at_end(round, node) ? end->second.ends : seen.first;
}

std::string why_gone(const Round& round, const NodePicture& node) {
  return is_at_end(round, node) ? "its VM's run duration is over" : "its VM is gone";
}

/// The end of one VM is not that of the next.
void remember_end(Round& round, const NodePicture& node) {
  LeaseEnd& known = round.memory.lease_ends[node.name];
  if (node.entry->terminates)
    known = {.ends = *node.entry->terminates, .vm = node.entry->id};
  else if (known.vm != node.entry->id || known.ends == TimePoint{})
    round.memory.lease_ends.erase(node.name);
}

struct Found {
  std::vector<const NodePicture*> gone{};
  std::size_t up = 0;
  std::size_t unexplained = 0;
};

bool is_up_in_cloud(const NodePicture& node) {
  return node.node != nullptr && is_cloud(*node.node) && is_up(*node.node);
}

Found look(Round& round) {
  Found found;
  std::erase_if(round.memory.lease_ends, [&](const auto& entry) {
    const NodePicture* const node = round.picture.find(entry.first);
    return node != nullptr && !node->has_vm() && !is_up_in_cloud(*node);
  });
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.has_vm()) remember_end(round, node);
    if (!is_up_in_cloud(node)) continue;
    ++found.up;
    if (!is_gone(node)) continue;
    found.gone.push_back(&node);
    if (!is_at_end(round, node)) ++found.unexplained;
  }
  return found;
}

bool is_busy(const NodePicture& node) {
  return !node.jobs.empty() || is_allocated(*node.node) || is_completing(*node.node);
}

/// Its time was over when its VM went.
bool was_over(const Job& job, TimePoint went) {
  return job.time_limit && !job.is_configuring && job.end_time != TimePoint{} &&
         job.end_time <= went;
}

/// slurmctld is about to end a job on the node itself, because its time was over when the VM went.
bool is_timing_out(const Round& round,
                   const NodePicture& node,
                   const Sighting& seen,
                   const OverTimeLimits& limits) {
  const TimePoint went = went_at(round, node, seen);
  const Seconds slack = kLimitTick + 2 * round.config.sweeper.interval;
  return std::any_of(node.jobs.begin(), node.jobs.end(), [&](const Job* job) {
    const TimePoint ended = job->end_time + limits.of(node.name) + slack;
    return was_over(*job, went) && ended > round.shot.now && ended - seen.first <= kTimeoutPatience;
  });
}

/// Those that slurmctld has not ended, for which DOWN would mean another run.
void cancel_over(Round& round, const std::map<JobId, std::vector<NodeName>>& over) {
  constexpr std::string_view kWhy = "its time was over when its VM went";
  for (const auto& [id, nodes] : over) {
    const Job& job = *round.picture.find_job(id);
    tell(round, Rule::UnbackedNode, std::string(kWhy), job, note_time_over(fold_hostlist(nodes)));
    round.add(Rule::UnbackedNode, std::string(kWhy), CancelJob{.job = id, .nodes = job.nodes});
  }
}

void end_jobs(Round& round, const std::vector<NodeName>& busy, const std::string& why) {
  const std::unordered_set<NodeName> all(busy.begin(), busy.end());
  for (const Job* job : jobs_on(round.picture, busy)) {
    std::vector<NodeName> lost;
    for (const NodeName& name : job->nodes) {
      if (all.contains(name)) lost.push_back(name);
    }
    if (round.is_told(job->id)) continue;
    tell(round,
         Rule::UnbackedNode,
         why,
         *job,
         note_vm_gone(fold_hostlist(lost), why, job->is_batch && job->may_requeue));
  }
  round.add(Rule::UnbackedNode,
            why,
            UpdateNodes{.request = NodeRequest::Down, .nodes = busy, .reason = "flex: " + why});
  round.add(Rule::UnbackedNode,
            why,
            UpdateNodes{.request = NodeRequest::PowerDown, .nodes = busy, .reason = {}});
}

/// DOWN after ResumeTimeout or by our own hand, and powered down: nothing is wrong with it any
/// more. Slurm leaves it so for ever unless idle_on_node_suspend is set or ResumeFailProgram did
/// its part.
void revive(Round& round) {
  std::vector<NodeName> nodes;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !is_down(*node.node) || !is_powered_down(*node.node) ||
        is_powering_down(*node.node) || is_power_down_requested(*node.node) ||
        !round.is_free(node.name))
      continue;
    const std::string& reason = node.node->reason;
    const bool is_known =
        reason.rfind("ResumeTimeout reached", 0) == 0 || reason.rfind(kNotePrefix, 0) == 0;
    if (!is_known || !round.see(Rule::UnbackedNode, node.name.text + " down").is_twice()) continue;
    round.claim(node.name);
    nodes.push_back(node.name);
  }
  if (nodes.empty()) return;
  round.add(Rule::UnbackedNode,
            "powered down and free, but left DOWN",
            UpdateNodes{.request = NodeRequest::Idle, .nodes = std::move(nodes), .reason = {}});
}

/// No group of the nodeset is listed at all, though the node had a VM in one: rather a wrong
/// project or region than the truth.
bool has_no_group(const Round& round,
                  const NodePicture& node,
                  const std::unordered_set<std::string_view>& nodesets_with_groups) {
  return !nodesets_with_groups.contains(round.nodeset_of(node).name);
}

/// Nodes by why their VM is gone, so that each batch is one call and says what is true for all of
/// it.
struct Lost {
  std::map<std::string, std::vector<NodeName>> busy{};
  std::map<std::string, std::vector<NodeName>> idle{};
  std::map<JobId, std::vector<NodeName>> over{};  ///< jobs that are not to run again
};

Lost find_lost(Round& round) {
  const Found found = look(round);
  const bool are_many = found.unexplained >= kMany && found.unexplained * 2 > found.up;
  Lost lost;
  std::unordered_set<std::string_view> nodesets_with_groups;
  for (const SweptGroup& group : round.shot.groups) nodesets_with_groups.insert(group.nodeset);
  const OverTimeLimits limits{round.shot};
  for (const NodePicture* node : found.gone) {
    const Sighting& seen = round.see(Rule::UnbackedNode, node->name.text);
    // What was to end and is gone needs no second look, if the list of its group is there.
    const bool is_lone = has_no_group(round, *node, nodesets_with_groups);
    if (!seen.is_twice() && (!is_at_end(round, *node) || is_lone)) continue;
    const bool is_doubtful = !is_at_end(round, *node) && (are_many || is_lone);
    if (is_doubtful && seen.age() < kDoubt) continue;
    const bool has_work = is_busy(*node);
    if (!has_work && is_power_down_requested(*node->node)) continue;
    if (is_timing_out(round, *node, seen, limits)) {
      round.claim(node->name);
      continue;
    }
    if (round.spend(1) == 0) continue;
    round.claim(node->name);
    for (const Job* job : node->jobs) {
      if (was_over(*job, went_at(round, *node, seen))) lost.over[job->id].push_back(node->name);
    }
    (has_work ? lost.busy : lost.idle)[why_gone(round, *node)].push_back(node->name);
  }
  return lost;
}

}  // namespace

void unbacked_node(Round& round) {
  const Lost lost = find_lost(round);
  cancel_over(round, lost.over);
  for (const auto& [why, nodes] : lost.busy) end_jobs(round, nodes, why);
  for (const auto& [why, nodes] : lost.idle) {
    round.add(
        Rule::UnbackedNode,
        why,
        UpdateNodes{
            .request = NodeRequest::PowerDownForce, .nodes = nodes, .reason = "flex: " + why});
  }
  keep_drains(round);
  revive(round);
}

}  // namespace flex
