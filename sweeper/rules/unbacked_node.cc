// SPDX-License-Identifier: GPL-2.0-or-later
// unbacked_node: Slurm has a node up whose VM is gone (lease end, host error, deleted by hand).
// With DOWN first its job goes back to the queue at once, not after SlurmdTimeout; then POWER_DOWN
// makes the node whole again.
#include "lib/core/job_note.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

namespace flex {

namespace {

/// So many up nodes without a VM at once, none of them at the end of its lease, and more than half
/// of all: rather a list that came back empty, or a wrong region, than the truth. Look for longer.
constexpr std::size_t kMany = 20;
constexpr Seconds kDoubt{300};

bool is_gone(const NodePicture& node) {
  return !node.entry || node.entry->is_dead() || (node.entry->is_queued() && !node.has_vm());
}

bool is_at_end(const Round& round, const NodePicture& node) {
  const auto end = round.memory.lease_ends.find(node.name);
  return end != round.memory.lease_ends.end() && end->second <= round.shot.now;
}

std::string why_gone(const Round& round, const NodePicture& node) {
  return is_at_end(round, node) ? "its VM's run duration is over" : "its VM is gone";
}

struct Found {
  std::vector<const NodePicture*> gone{};
  std::size_t up = 0;
  std::size_t unexplained = 0;
};

Found look(Round& round) {
  Found found;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.has_vm() && node.entry->terminates)
      round.memory.lease_ends[node.name] = *node.entry->terminates;
    if (node.node == nullptr || !is_cloud(*node.node) || !is_up(*node.node)) {
      if (!node.has_vm()) round.memory.lease_ends.erase(node.name);
      continue;
    }
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

void end_jobs(Round& round, const std::vector<NodeName>& busy, const std::string& why) {
  for (const Job* job : jobs_on(round.picture, busy)) {
    std::vector<NodeName> lost;
    for (const NodeName& name : job->nodes) {
      if (std::find(busy.begin(), busy.end(), name) != busy.end()) lost.push_back(name);
    }
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

}  // namespace

void unbacked_node(Round& round) {
  const Found found = look(round);
  const bool is_doubtful = found.unexplained >= kMany && found.unexplained * 2 > found.up;
  // By reason, so that each batch is one call and says what is true for all of it.
  std::map<std::string, std::vector<NodeName>> busy;
  std::map<std::string, std::vector<NodeName>> idle;
  for (const NodePicture* node : found.gone) {
    const Sighting& seen = round.see(Rule::UnbackedNode, node->name.text);
    if (!seen.is_twice()) continue;
    if (is_doubtful && !is_at_end(round, *node) && seen.age() < kDoubt) continue;
    const bool has_work = is_busy(*node);
    if (!has_work && is_power_down_requested(*node->node)) continue;
    if (round.spend(1) == 0) continue;
    round.claim(node->name);
    (has_work ? busy : idle)[why_gone(round, *node)].push_back(node->name);
  }
  for (const auto& [why, nodes] : busy) end_jobs(round, nodes, why);
  for (const auto& [why, nodes] : idle) {
    round.add(
        Rule::UnbackedNode,
        why,
        UpdateNodes{
            .request = NodeRequest::PowerDownForce, .nodes = nodes, .reason = "flex: " + why});
  }
  revive(round);
}

}  // namespace flex
