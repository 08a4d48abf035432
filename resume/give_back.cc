// SPDX-License-Identifier: GPL-2.0-or-later
// What Slurm is told after the requests: notes to job authors, and jobs and nodes given back.
#include "lib/core/job_note.h"
#include "lib/fleet/power_down.h"
#include "lib/slurm/hostlist.h"
#include "resume/apply.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace flex {

namespace {

/// Slurm keeps reasons and comments of any length, but nobody reads a page in squeue.
constexpr std::size_t kLongestReason = 300;

/// False if slurmctld refused. What it is about to wake is left in `nodes`.
bool power_down_force(const GiveBackTo& slurm,
                      std::vector<NodeName>& nodes,
                      const std::string& reason) {
  const std::vector<NodeName> wanted = std::exchange(nodes, {});
  const TakenDown taken = take_down_patiently(
      slurm.scheduler,
      slurm.config,
      {.request = NodeRequest::PowerDownForce, .nodes = wanted, .reason = reason},
      slurm.patience);
  nodes = taken.waking;
  if (!taken.done.empty())
    slurm.log.info(
        "given_back",
        {{"nodes", fold_hostlist(taken.done)}, {"n", taken.done.size()}, {"why", reason}});
  if (!taken.waking.empty() && slurm.patience.count() > 0)
    slurm.log.warning("left_to_sweeper",
                      {{"nodes", fold_hostlist(taken.waking)},
                       {"n", taken.waking.size()},
                       {"why", "slurmctld has not carried out their POWER_UP yet"},
                       {"then", "the sweeper powers them down"}});
  if (taken.result) return true;
  slurm.log.error(
      "give_back_failed",
      {{"nodes", fold_hostlist(wanted)}, {"n", wanted.size()}, {"why", taken.result.error().what}});
  return false;
}

class GiveBack {
 public:
  GiveBack(const GiveBackTo& slurm, const SlurmReport& report)
      : slurm_(slurm), scheduler_(slurm.scheduler), log_(slurm.log) {
    for (const Demand::JobNodes& wanted : report.demand.jobs) {
      jobs_[wanted.job.id] = &wanted.job;
      coming_[wanted.job.id] = wanted.nodes;
    }
    for (const Demand::JobNodes& on : report.demand.on_static) {
      jobs_.emplace(on.job.id, &on.job);
      coming_[on.job.id];
      for (const NodeName& node : on.nodes) on_static_[node].push_back(on.job.id);
    }
  }

  void refuse(JobId id, const std::vector<NodeName>& nodes, const Error& error) {
    if (!is_permanent(error)) return;
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) {
      nodes_.insert(nodes.begin(), nodes.end());
      reason_ = shortened(error.what, kLongestReason);
      // A static node is nobody's, but a job may wait for it.
      for (const NodeName& node : nodes) {
        const auto on = on_static_.find(node);
        if (on == on_static_.end()) continue;
        for (const JobId job : on->second) refuse(job, {node}, error);
      }
      return;
    }
    const Job& job = *found->second;
    // The job needs all of its nodes: none of those that were to come up for it is of use now. Its
    // nodes that are up stay, others may be on them.
    const std::vector<NodeName>& coming = coming_.at(id);
    nodes_.insert(coming.begin(), coming.end());
    nodes_.insert(nodes.begin(), nodes.end());
    reason_ = shortened(error.what, kLongestReason);
    if (!given_back_.insert(id).second) return;
    tell(job, note_refused(shortened(error.what, kLongestReason)));
    if (!job.is_batch || !job.may_requeue) return;  // POWER_DOWN_FORCE ends those
    // Of a heterogeneous job only the leader can be requeued; it takes the others along.
    const JobId leader = job.het_job_id != 0 ? job.het_job_id : id;
    if (!held_.insert(leader).second) return;
    if (auto held = scheduler_.requeue_and_hold(leader); !held) {
      log_.warning("hold_failed", {{"job", leader}, {"why", held.error().what}});
      ok_ = false;
      return;
    }
    log_.info("job_held", {{"job", leader}, {"why", error.what}});
  }

  void tell_capped(const CappedJob& capped) {
    const auto found = jobs_.find(capped.job);
    if (found == jobs_.end() || given_back_.contains(capped.job)) return;
    tell(*found->second, capped.note);
  }

  void power_down() {
    if (nodes_.empty()) return;
    std::vector<NodeName> nodes{nodes_.begin(), nodes_.end()};
    ok_ = power_down_force(slurm_, nodes, fmt::format("flex: {}", reason_)) && ok_;
  }

  [[nodiscard]] bool ok() const { return ok_; }

 private:
  void tell(const Job& job, const std::string& text) {
    const std::string comment = with_note(job.admin_comment, text);
    if (comment == job.admin_comment) return;
    auto told = scheduler_.set_admin_comment(job.id, comment);
    if (told) return;
    log_.warning("comment_failed", {{"job", job.id}, {"why", told.error().what}});
    ok_ = false;
  }

  const GiveBackTo& slurm_;
  Scheduler& scheduler_;
  const Log& log_;
  std::map<JobId, const Job*> jobs_{};
  std::map<JobId, std::vector<NodeName>> coming_{};
  std::map<NodeName, std::vector<JobId>> on_static_{};
  std::set<JobId> given_back_{};
  std::set<JobId> held_{};
  std::set<NodeName> nodes_{};
  std::string reason_{};
  bool ok_ = true;
};

}  // namespace

bool release_unwanted(const GiveBackTo& slurm, std::vector<NodeName>& unwanted) {
  if (unwanted.empty()) return true;
  return power_down_force(slurm, unwanted, "flex: the job that asked for this node is gone");
}

bool apply_to_slurm(const GiveBackTo& slurm, const SlurmReport& report) {
  GiveBack give_back{slurm, report};
  for (const Refusal& refusal : report.plan.refusals)
    give_back.refuse(refusal.job, refusal.nodes, refusal.error);
  for (const RequestOutcome& outcome : report.outcomes) {
    if (outcome.result != RequestResult::Failed) continue;
    give_back.refuse(outcome.request.job, outcome.request.spec.nodes, outcome.error);
  }
  for (const CappedJob& capped : report.plan.capped) give_back.tell_capped(capped);
  give_back.power_down();
  return give_back.ok();
}

}  // namespace flex
