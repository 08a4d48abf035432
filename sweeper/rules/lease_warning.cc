// SPDX-License-Identifier: GPL-2.0-or-later
// lease_warning, of rule lease_end: jobs that would still run when their VMs end are warned once,
// lease_warning before that, so that they can save their work. Just before the end the node gets no
// more jobs; our drain goes when the VM has gone.
#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"
#include "sweeper/lease.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <map>

namespace flex {

namespace {

constexpr std::string_view kDrainMark = "flex: lease ends";
/// An end that moves by less is the same one.
constexpr Seconds kMinute{60};

/// Remembered, or written in its comment: that is written last, and outlives our memory.
bool is_warned(const Round& round, const Job& job, const Overrun& overrun) {
  const auto found = round.memory.warned.find(job.id);
  const bool is_remembered =
      found != round.memory.warned.end() && found->second.restart_count == job.restart_count &&
      overrun.ends >= found->second.ends - kMinute && overrun.ends <= found->second.ends + kMinute;
  return is_remembered || with_note(job.admin_comment, note_warned(overrun)) == job.admin_comment;
}

/// A part of a heterogeneous job whose leader is warned: the signal to that reaches all parts, and
/// the output is the leader's.
bool is_led(const Round& round, const Job& job, const JobLease& lease) {
  if (job.het_job_id == 0 || job.id == job.het_job_id) return false;
  const Job* leader = round.picture.find_job(job.het_job_id);
  return leader != nullptr && is_warning_due(round, *leader, lease);
}

void warn_jobs(Round& round) {
  for (const Job& job : round.shot.jobs.items) {
    if (!job.is_running || !job.holds_nodes() || round.is_told(job.id)) continue;
    const auto lease = lease_of(round.picture, job);
    if (!lease || !is_warning_due(round, job, *lease)) continue;
    const Overrun overrun = *overrun_of(job, *lease);
    if (is_warned(round, job, overrun)) continue;
    const bool is_part = is_led(round, job, *lease);
    const int signal = round.config.nodesets[lease->nodeset].lease_signal;
    round.add(Rule::LeaseEnd,
              fmt::format("its VMs end {}", local_time(overrun.ends)),
              WarnJob{.job = job.id,
                      .signal = is_part ? 0 : signal,
                      .line = is_part ? std::string{} : warning_line(overrun, round.shot.now),
                      .comment = with_note(job.admin_comment, note_warned(overrun)),
                      .ends = overrun.ends,
                      .restart_count = job.restart_count});
  }
}

void forget_jobs(Round& round) {
  std::erase_if(round.memory.warned, [&](const auto& entry) {
    const Job* job = round.picture.find_job(entry.first);
    return job == nullptr || job->is_finished;
  });
}

bool is_drained_by_us(const Node& node) {
  return is_draining(node) && node.reason.starts_with(kDrainMark);
}

bool is_near_end(const Round& round, const NodePicture& node) {
  return node.has_vm() && node.entry->terminates &&
         round.shot.now >= *node.entry->terminates - drain_lead(round.config);
}

/// Only a node that is up: slurmctld would requeue the job that one comes up for.
bool is_to_drain(const Round& round, const NodePicture& node) {
  return is_up(*node.node) && !is_down(*node.node) && !is_draining(*node.node) &&
         !is_power_down_requested(*node.node) && is_near_end(round, node);
}

/// Its VM is gone and the node is off, or it has another VM, which ends later.
bool is_to_undrain(const Round& round, const NodePicture& node) {
  if (!is_drained_by_us(*node.node) || is_powering_down(*node.node)) return false;
  const bool has_other_vm = node.has_vm() && node.entry->terminates && !is_near_end(round, node);
  return is_powered_down(*node.node) || node.is_coming_up() || has_other_vm;
}

void drain_nodes(Round& round) {
  std::map<std::string, std::vector<NodeName>> by_reason;
  std::vector<NodeName> over;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !round.is_free(node.name)) continue;
    if (is_to_drain(round, node)) {
      round.claim(node.name);
      by_reason[fmt::format("{} {}", kDrainMark, local_time(*node.entry->terminates))].push_back(
          node.name);
    } else if (is_to_undrain(round, node)) {
      round.claim(node.name);
      over.push_back(node.name);
    }
  }
  for (auto& [reason, nodes] : by_reason) {
    round.add(
        Rule::LeaseEnd,
        "its VM is about to end",
        UpdateNodes{.request = NodeRequest::Drain, .nodes = std::move(nodes), .reason = reason});
  }
  if (over.empty()) return;
  round.add(Rule::LeaseEnd,
            "the VM that it was drained for is gone",
            UpdateNodes{.request = NodeRequest::Undrain, .nodes = std::move(over), .reason = {}});
}

}  // namespace

void lease_warning(Round& round) {
  warn_jobs(round);
  forget_jobs(round);
  drain_nodes(round);
}

}  // namespace flex
