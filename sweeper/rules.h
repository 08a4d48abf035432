// SPDX-License-Identifier: GPL-2.0-or-later
// The rules: each looks at the picture and adds the actions that it wants; pure but for the memory.
// One file each in rules/.
#pragma once

#include "lib/config/config.h"
#include "lib/core/job_note.h"
#include "lib/fleet/drain.h"
#include "lib/fleet/fit.h"
#include "sweeper/action.h"
#include "sweeper/memory.h"
#include "sweeper/queue.h"
#include "sweeper/snapshot.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace flex {

/// One round's decisions, as the rules build them up. An earlier rule's claim to a node keeps the
/// later ones away from it.
class Round {
 public:
  Round(const Config& settings, const Snapshot& look, const Picture& index, Memory& kept)
      : config(settings), shot(look), picture(index), memory(kept) {}

  const Config& config;
  const Snapshot& shot;
  const Picture& picture;
  Memory& memory;
  std::vector<Action> actions{};
  std::vector<Turn> turns{};                            ///< who waits to be asked for
  std::unordered_map<JobId, std::string> turn_notes{};  ///< for those who wait for their turn
  /// For those whose request is too short and about to be made anew.
  std::unordered_map<JobId, std::string> longer_notes{};
  std::size_t waiting = 0;                                ///< that a request is not asked for now
  std::map<std::string, std::size_t> waiting_nodesets{};  ///< that wait for room in a nodeset

  /// From now on the nodes' request is take_turns' matter.
  void enqueue(Turn turn) {
    queued_.insert(turn.nodes.begin(), turn.nodes.end());
    turns.push_back(std::move(turn));
  }

  [[nodiscard]] bool is_queued(const NodeName& node) const { return queued_.contains(node); }

  void add(Rule rule, std::string why, ActionKind what) {
    actions.push_back({.rule = rule, .why = std::move(why), .what = std::move(what)});
    const Action& added = actions.back();
    if (std::holds_alternative<TellJob>(added.what) ||
        std::holds_alternative<GiveJobBack>(added.what))
      told_.insert(job_of(added));
  }

  /// A comment for the job is among the actions.
  [[nodiscard]] bool is_told(JobId job) const { return told_.contains(job); }

  const Sighting& see(Rule rule, std::string_view key) const {
    return memory.see(to_string(rule), key, shot.now);
  }

  void claim(const NodeName& node) { claimed_.insert(node); }

  void claim(const std::vector<NodeName>& nodes) { claimed_.insert(nodes.begin(), nodes.end()); }

  [[nodiscard]] bool is_free(const NodeName& node) const { return !claimed_.contains(node); }

  /// A request that is being cancelled or deleted this round.
  void claim_request(const SweptGroup& group, const ResizeRequest& request) {
    requests_.insert(group.group.name.text + "/" + request.name.text);
  }

  [[nodiscard]] bool is_free(const SweptGroup& group, const ResizeRequest& request) const {
    return !requests_.contains(group.group.name.text + "/" + request.name.text);
  }

  [[nodiscard]] const NodesetConfig& nodeset_of(const NodePicture& node) const {
    return config.nodesets[node.nodeset];
  }

  [[nodiscard]] bool is_stopped(const NodePicture& node) const {
    return memory.stopped.contains(nodeset_of(node).name);
  }

  /// Takes up to `wanted` of what may still be destroyed this round.
  [[nodiscard]] std::size_t spend(std::size_t wanted) {
    const std::size_t left = config.sweeper.max_deletes_per_round - spent_;
    const std::size_t granted = wanted < left ? wanted : left;
    spent_ += granted;
    postponed_ += wanted - granted;
    return granted;
  }

  /// How much the budget has put off to a later round.
  [[nodiscard]] std::size_t postponed() const { return postponed_; }

 private:
  std::unordered_set<NodeName> claimed_{};
  std::unordered_set<NodeName> queued_{};
  std::unordered_set<std::string> requests_{};
  std::unordered_set<JobId> told_{};
  std::size_t spent_ = 0;
  std::size_t postponed_ = 0;
};

void unbacked_node(Round& round);
void refused_registration(Round& round);
void unhealthy_node(Round& round);
void lease_end(Round& round);
void lease_warning(Round& round);
void spent_node(Round& round);
void failed_request(Round& round);
void no_longer_eligible(Round& round);
void provision_timeout(Round& round);
void stale_request(Round& round);
void incomplete_job(Round& round);
void boot_timeout(Round& round);
void orphan_instance(Round& round);
void unrequested_node(Round& round);
void keep_waiting(Round& round);
void keep_waiting_blindly(Round& round);
void static_node(Round& round);
void take_turns(Round& round);
void finished_request(Round& round);
void empty_mig(Round& round);
void job_note(Round& round);
void node_note(Round& round);
void surplus_request(Round& round);
void stockout(Round& round);
void resubmit(Round& round);
void race(Round& round);
void unused_policy(Round& round);
void unusable_node(Round& round);

/// Part of unbacked_node: drains that a power-down has taken are put back. Goes by Slurm alone, so
/// that it can be done for nodesets (`only` these, unless empty) whose VMs cannot be seen.
void keep_drains(Round& round, const std::set<std::string>& only = {});
/// Forgets all that is known of a drain that an admin has taken away.
void forget_drain(Memory& memory, const NodeName& node);
/// Part of boot_timeout: nodesets that the breaker or an admin has stopped.
void watch_stopped(Round& round);
/// Part of boot_timeout: these nodes have come up, as far as is known.
void note_boots(Round& round, const NodesetConfig& nodeset, const std::vector<NodeName>& booted);

// ---- what several rules need ----

// What sightings go by. A name may be used again: what was seen of the one before is not true of
// the next. So each key ends with Google's id, or else with when the thing was made.
[[nodiscard]] std::string key_of(const Group& group);
[[nodiscard]] std::string key_of(const ResizeRequest& request);
[[nodiscard]] std::string key_of(const Policy& policy);
[[nodiscard]] std::string key_of(const SweptGroup& group, const Instance& instance);
/// The node with the VM that it has now.
[[nodiscard]] std::string vm_key(const NodePicture& node);
/// Requests of ours that wait in Google's queue, with their nodes, and that no rule has taken up.
/// One that is being created or served cannot be cancelled: it is looked at again.
[[nodiscard]] std::vector<Placed<ResizeRequest>> queued_requests(const Round& round);
/// min(base · 2^(failures-1), max).
[[nodiscard]] Seconds pause_after(const RetryConfig& retry, std::uint32_t failures);
/// False while the node's next attempt has to wait.
[[nodiscard]] bool is_due(const Round& round, const NodePicture& node);
/// The jobs on these nodes, each once.
[[nodiscard]] std::vector<const Job*> jobs_on(const Picture& picture,
                                              const std::vector<NodeName>& nodes);
/// The job's nodes that come up for it, and for no job that is not in `jobs`: what may be powered
/// down when those are given back.
[[nodiscard]] std::vector<NodeName> coming_for(const Picture& picture,
                                               const Job& job,
                                               const std::vector<const Job*>& jobs);
/// When the wait for VMs began: when the job got its nodes; `otherwise` where that is not known.
[[nodiscard]] TimePoint waits_since(const Round& round, const Job* job, TimePoint otherwise);
/// Drained for one of the nodeset's repair_reasons.
[[nodiscard]] bool is_to_repair(const Round& round, const NodePicture& node);
/// Remembers which nodes come up because a job wanted them, or because of a flag that was left
/// over.
void remember_wakes(Round& round);
/// It comes up, and neither a job nor an admin wants it.
[[nodiscard]] bool comes_for_nobody(const Round& round, const NodePicture& node);
/// Who waits for the node, in its nodeset: "a job 7", or the node itself.
[[nodiscard]] std::string waiter_of(const Round& round, const NodePicture& node);
/// How far they have come in on_stockout.
[[nodiscard]] std::size_t stockout_step(const Round& round, const NodePicture& node);
/// Drops the ways of waits that are over, and shuts those that an admin has cancelled.
void remember_shut(Round& round);

/// A request that failed, or was refused, while others for the same nodes go on.
struct FailedWay {
  std::string waiter{};
  std::uint32_t restart_count = 0;
  MigName group{};
  RetryConfig policy{};
  Error error{};
};

/// It is not made again before a pause is over; not in this wait if its zone can never serve it.
void shut_failed(Memory& memory, const FailedWay& failed, TimePoint now);
/// The groups in which each of these nodes is not asked for now.
[[nodiscard]] std::set<std::pair<NodeName, MigName>> shut_for(const Round& round,
                                                              const std::vector<NodeName>& nodes);
/// All that the turn would ask for is shut.
[[nodiscard]] bool is_shut_out(const Round& round, const Turn& turn);
/// One that has failed and is tried again later, or not in this wait; null: none.
[[nodiscard]] const ShutWay* failed_way(const Round& round, const NodePicture& node);
/// A bulkInsert that is under way may be for it; but not for ever, for it may be anybody's.
[[nodiscard]] bool may_still_come(Round& round, const NodePicture& node);
/// A node that is powering up and has neither VM nor active request.
[[nodiscard]] bool is_unserved(const NodePicture& node);
/// It is to come up, slurmctld may not have begun with it, and has no VM.
[[nodiscard]] bool lacks_vm(const NodePicture& node);

/// What the sweeper knows of nodes, to judge requests by.
class PictureFacts : public NodeFacts {
 public:
  explicit PictureFacts(const Picture& picture) : picture_(picture) {}

  [[nodiscard]] const std::vector<const Job*>& jobs_on(const NodeName& node) const override;
  [[nodiscard]] bool lacks_vm(const NodeName& node) const override;
  [[nodiscard]] std::vector<const ResizeRequest*> requests_on(const NodeName& node) const override;

 private:
  const Picture& picture_;
};

/// The nodes, and what else their job lacks in the same nodeset and nobody has asked for: one
/// request is for all of it.
[[nodiscard]] std::vector<NodeName> with_rest_of_job(const Round& round,
                                                     std::vector<NodeName> nodes);
/// What waits to be asked for, with the job on the first of the nodes. It waits since the job got
/// its nodes; where that is not known, since it was first seen.
[[nodiscard]] Turn make_turn(const Round& round,
                             Rule rule,
                             std::string why,
                             std::vector<NodeName> nodes,
                             TimePoint first_seen);
/// Plans for these turns, in their order, with flex-resume's planner: the nodes of each together,
/// for its job, and for as long as every job on them needs.
[[nodiscard]] AskForNodes plan_for(const Round& round,
                                   const std::vector<const Turn*>& turns,
                                   const PlanOptions& options);
/// Claims the request and adds its cancelling.
void cancel_request(Round& round,
                    Rule rule,
                    const std::string& why,
                    const Placed<ResizeRequest>& request);
/// What came for the job, and for no job that is not in `jobs`: nodes on their way, and those that
/// are up already and of no use without the others. No static ones.
[[nodiscard]] std::vector<NodeName> nodes_given_up(const Round& round,
                                                   const Job& job,
                                                   const std::vector<const Job*>& jobs);
/// What becomes of a job that waits no longer. Of a heterogeneous job only the leader can be
/// requeued; it takes the others along. `going`: its nodes that are powered down.
void send_away(Round& round,
               Rule rule,
               const std::string& why,
               const Job& job,
               TimeoutOutcome fate,
               const std::vector<NodeName>& going);
/// The parts of a heterogeneous job go together, and its author looks at any of them.
void tell_all_parts(
    Round& round, Rule rule, const std::string& why, const Job& job, const std::string& note);
/// It is, or would be, asked for without any job: cancelling it would only lose its place.
[[nodiscard]] bool is_for_static_nodes(const Round& round, const ResizeRequest& request);
/// TellJob with `text` as our part of the comment; nothing if it says that already.
void tell(Round& round, Rule rule, const std::string& why, const Job& job, std::string_view text);
/// Adds actions for what the budget allows of it, at most kMaxRequestSize entries each; how many
/// entries that are.
std::size_t delete_instances(Round& round,
                             Rule rule,
                             const std::string& why,
                             const MigName& group,
                             const std::vector<Instance>& doomed,
                             bool keep_serial_log);

}  // namespace flex
