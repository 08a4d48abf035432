// SPDX-License-Identifier: GPL-2.0-or-later
// unrequested_node: slurmctld brings a node up, and neither a VM nor a request is there.
// flex-resume died, was refused or left it to us, or the request has gone: ask as it would have,
// when its turn comes. A node that nobody waits for is given back instead.
#include "lib/slurm/node_state.h"
#include "resume/admit.h"
#include "sweeper/rules.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace flex {

namespace {

/// Nodes that slurmctld brings up for nobody: a job that was cancelled before anything was asked
/// for, or an admin's POWER_UP of which nothing came.
void give_back(Round& round, const NodePicture& node, std::vector<NodeName>& unwanted) {
  const Sighting& seen = round.see(Rule::UnrequestedNode, node.name.text + " unwanted");
  // What came up for a job or by a left-over flag is nobody's; the rest may be an admin's.
  const bool is_patient = !comes_for_nobody(round, node);
  if (!seen.is_twice() || (is_patient && seen.age() < round.config.sweeper.orphan_grace)) return;
  unwanted.push_back(node.name);
  round.claim(node.name);
}

/// The next attempt is failed_request's.
bool is_between_attempts(const NodePicture& node) {
  return node.failed && node.jobs.empty() && !node.is_static;
}

/// A static node that an admin has drained stays as it is: powering it down would undo the drain.
bool is_set_aside(const NodePicture& node) {
  return node.is_static && node.jobs.empty() && is_draining(*node.node);
}

/// Seen twice, no pause to be kept, and its name is not just being freed.
bool is_ripe(Round& round, const NodePicture& node) {
  const Sighting& seen = round.see(Rule::UnrequestedNode, node.name.text);
  const bool is_leaving = node.entry && node.entry->is_leaving();
  return seen.is_twice() && is_due(round, node) && !is_leaving && !may_still_come(round, node);
}

/// A request is all or nothing: a job is asked for when all of its missing nodes are ripe.
void add_to(Round& round, Turn& turn, const NodePicture& node) {
  const bool is_now = is_ripe(round, node);
  const TimePoint first_seen = round.see(Rule::UnrequestedNode, node.name.text).first;
  if (turn.nodes.empty())
    turn = make_turn(round,
                     Rule::UnrequestedNode,
                     "powering up without a VM or an active request",
                     {node.name},
                     first_seen);
  else
    turn.nodes.push_back(node.name);
  turn.is_ready = turn.is_ready && is_now;
}

/// All that the job lacks is asked for, or can be asked for now. Not while a part of it is in a
/// request that has to go first, or slurmctld has yet to begin with it.
bool is_whole(const Round& round, const Turn& turn, const Job* job) {
  const PictureFacts facts{round.picture};
  const std::set<NodeName> mine(turn.nodes.begin(), turn.nodes.end());
  return std::all_of(job->nodes.begin(), job->nodes.end(), [&](const NodeName& name) {
    const NodePicture* const node = round.picture.find(name);
    if (node == nullptr || node->is_static || !lacks_vm(*node) || mine.contains(name)) return true;
    if (node->is_queued_alone()) return true;
    // Another job has it, and asks for it.
    if (node->jobs.front() != job && !node->request) return true;
    const auto requests = facts.requests_on(name);
    // A request that does not say which nodes it is for cannot be judged.
    if (requests.empty()) return static_cast<bool>(node->request);
    return std::all_of(requests.begin(), requests.end(), [&](const auto* one) {
      return judge(round.config, facts, *one).fit != Fit::Wrong;
    });
  });
}

}  // namespace

void unrequested_node(Round& round) {
  std::map<JobId, Turn> by_job;  // slurmctld starts the parts of a heterogeneous job together
  std::vector<NodeName> unwanted;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!is_unserved(node) || !round.is_free(node.name) || round.is_stopped(node)) continue;
    if (round.is_queued(node.name)) {
      round.see(Rule::UnrequestedNode, node.name.text);  // that is what keep_waiting goes by
      continue;
    }
    if (is_between_attempts(node) || is_set_aside(node)) continue;
    if (!node.is_awaited()) {
      give_back(round, node, unwanted);
    } else if (node.jobs.empty() || node.is_static) {
      Turn turn;
      add_to(round, turn, node);
      round.enqueue(std::move(turn));
    } else {
      add_to(round, by_job[leader_of(*node.jobs.front())], node);
    }
  }
  for (auto& [leader, turn] : by_job) {
    for (const Job* job : jobs_on(round.picture, turn.nodes)) {
      if (leader_of(*job) == leader) turn.is_ready = turn.is_ready && is_whole(round, turn, job);
    }
    round.enqueue(std::move(turn));
  }
  if (unwanted.empty()) return;
  round.add(Rule::UnrequestedNode,
            "powering up for nobody: no job, no VM, no request",
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(unwanted),
                        .reason = "flex: no job wants this node"});
}

}  // namespace flex
