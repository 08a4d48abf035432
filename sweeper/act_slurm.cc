// SPDX-License-Identifier: GPL-2.0-or-later
// What the actions ask of slurmctld. Between the look and this moment a job may have been put on a
// node: what has changed is left alone until the next round.
#include "lib/core/job_note.h"
#include "lib/fleet/node_extra.h"
#include "lib/fleet/power_down.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "resume/events.h"
#include "sweeper/act.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

class SlurmActor {
 public:
  SlurmActor(Actor& actor, ActReport& report) : actor_(actor), report_(report) {}

  /// False if slurmctld does not answer: then nothing is written.
  bool prepare() {
    const auto nodes = actor_.scheduler.load_nodes();
    if (!nodes) return give_up(nodes.error());
    const auto jobs = actor_.scheduler.load_all_jobs();
    if (!jobs) return give_up(jobs.error());
    std::unordered_map<NodeName, const Node*> before;
    for (const Node& node : actor_.shot.nodes.items) before[node.name] = &node;
    for (const Node& node : *nodes) {
      const auto found = before.find(node.name);
      if (found == before.end() || has_changed(*found->second, node)) changed_.insert(node.name);
    }
    const Holders then = holders_of(actor_.shot.jobs.items);
    const Holders now = holders_of(*jobs);
    note_moved(actor_.shot.jobs.items, *jobs);
    note_other_holders(then, now);
    note_other_holders(now, then);
    changed_.insert(actor_.served.begin(), actor_.served.end());
    return true;
  }

  /// How a job stands is told only where nobody has written into its comment since the look:
  /// flexctl, say, why its request was cancelled. One call, and only where something is to be told.
  void find_renoted(const std::vector<const Action*>& actions) {
    const bool is_any = std::any_of(
        actions.begin(), actions.end(), [](const Action* action) { return is_note(*action); });
    if (!is_any) return;
    const auto jobs = actor_.scheduler.load_all_jobs();
    if (!jobs) return;
    std::unordered_map<JobId, const std::string*> comments;
    for (const Job& job : actor_.shot.jobs.items) comments[job.id] = &job.admin_comment;
    std::unordered_set<JobId> changed;
    for (const Job& job : *jobs) {
      const auto found = comments.find(job.id);
      if (found != comments.end() && *found->second != job.admin_comment) changed.insert(job.id);
    }
    for (const Action* action : actions) {
      if (is_note(*action) && changed.contains(job_of(*action))) renoted_.insert(job_of(*action));
    }
  }

  void carry_out(const Action& action) {
    if (const auto* tell = std::get_if<TellJob>(&action.what)) {
      if (renoted_.contains(tell->job)) return postpone(action, kRenoted);
      if (finish(action, actor_.scheduler.set_admin_comment(tell->job, tell->comment)))
        actor_.memory.notes[tell->job] = actor_.shot.now;
    } else if (const auto* back = std::get_if<GiveJobBack>(&action.what)) {
      if (any_changed(back->job.nodes)) return postpone(action);
      refuse(back->job, {.job = back->job.job.id, .nodes = back->job.nodes, .error = back->error});
      given_back_.push_back(&action);
    } else if (const auto* requeue = std::get_if<RequeueJob>(&action.what)) {
      if (has_moved(action, requeue->job, requeue->nodes)) return postpone(action);
      if (!requeued_.insert(requeue->job).second) return;  // another part of the same job
      finish(action,
             requeue->hold ? actor_.scheduler.requeue_and_hold(requeue->job)
                           : actor_.scheduler.requeue(requeue->job));
      // Its nodes are idle now, which is no news.
    } else if (const auto* cancel = std::get_if<CancelJob>(&action.what)) {
      if (has_moved(action, cancel->job, cancel->nodes)) return postpone(action);
      if (!requeued_.insert(cancel->job).second) return;  // another part of the same job
      finish(action, actor_.scheduler.cancel_job(cancel->job));
    } else if (const auto* note = std::get_if<NoteLease>(&action.what)) {
      note_lease(action, *note);
    } else if (const auto* drain = std::get_if<NoteDrain>(&action.what)) {
      note_drain(action, *drain);
    } else if (const auto* update = std::get_if<UpdateNodes>(&action.what)) {
      update_nodes(action, *update);
    } else if (const auto* warn = std::get_if<WarnJob>(&action.what)) {
      warn_job(action, *warn);
    } else if (const auto* set = std::get_if<SetReservation>(&action.what)) {
      if (set->is_smaller && has_gap_) return postpone(action, kGap);
      const bool is_done = finish(action, set_reservation(*set));
      has_gap_ = has_gap_ || (!is_done && !set->is_smaller);
    } else if (const auto* gone = std::get_if<DeleteReservation>(&action.what)) {
      if (has_gap_) return postpone(action, kGap);
      const auto done = actor_.scheduler.delete_reservation(gone->name);
      const bool is_gone = !done && done.error().kind == ErrorKind::NotFound;
      finish(action, is_gone ? Result<Done>{Done{}} : done);
    }
  }

  /// All jobs that cannot be served, as flex-resume gives them back: those of failed requests, and
  /// those whose new request was refused. Together, because the parts of a heterogeneous job are
  /// one.
  void give_back() {
    Asked& asked = actor_.asked;
    const auto has_moved = [&](const std::vector<NodeName>& nodes) { return any_changed(nodes); };
    std::erase_if(asked.outcomes, [&](const RequestOutcome& outcome) {
      return has_moved(outcome.request.spec.nodes);
    });
    std::erase_if(asked.plan.refusals,
                  [&](const Refusal& refusal) { return has_moved(refusal.nodes); });
    const std::vector<Refusal> not_taken = asked.plan.refusals;
    for (const Demand::JobNodes& job : refused_.jobs) asked.demand.jobs.push_back(job);
    for (const Refusal& refusal : refusals_) asked.plan.refusals.push_back(refusal);
    if (asked.outcomes.empty() && asked.plan.refusals.empty()) return;
    const bool ok =
        apply_to_slurm({.scheduler = actor_.scheduler, .config = actor_.config, .log = actor_.log},
                       {asked.demand, asked.plan, asked.outcomes});
    (ok ? report_.done : report_.failed) += ok ? refusals_.size() : 1;
    for (const Action* action : given_back_) report_.note(*action, ok ? "ok" : "failed");
    Event like;
    like.more["result"] = ok ? "ok" : "failed";
    for (Event& event : given_back_events(like, not_taken, asked.outcomes))
      report_.events.push_back(std::move(event));
    actor_.asked = {};
  }

  /// slurmctld does not answer any more: each further call would take its time to say so.
  [[nodiscard]] bool is_away() const { return is_away_; }

  static bool touches_slurm(const Action& action) {
    return std::holds_alternative<GiveJobBack>(action.what) ||
           std::holds_alternative<RequeueJob>(action.what) ||
           std::holds_alternative<CancelJob>(action.what) ||
           std::holds_alternative<UpdateNodes>(action.what) || moves_nothing(action);
  }

  /// What is right whatever has become of the nodes and jobs since the look.
  static bool moves_nothing(const Action& action) {
    return std::holds_alternative<TellJob>(action.what) ||
           std::holds_alternative<WarnJob>(action.what) ||
           std::holds_alternative<NoteLease>(action.what) ||
           std::holds_alternative<NoteDrain>(action.what) ||
           std::holds_alternative<SetReservation>(action.what) ||
           std::holds_alternative<DeleteReservation>(action.what);
  }

  static bool is_note(const Action& action) {
    return action.rule == Rule::JobNote && std::holds_alternative<TellJob>(action.what);
  }

  /// Comments before what ends or moves a job, jobs before their nodes.
  static int order(const Action& action) {
    if (moves_nothing(action)) return 0;
    if (std::holds_alternative<GiveJobBack>(action.what)) return 1;
    if (std::holds_alternative<RequeueJob>(action.what) ||
        std::holds_alternative<CancelJob>(action.what))
      return 2;
    return kNodes;
  }

  static constexpr int kNodes = 3;

 private:
  using Holders = std::unordered_map<NodeName, std::set<std::pair<JobId, std::uint32_t>>>;

  /// Which jobs have which nodes, and in which of their lives.
  static Holders holders_of(const std::vector<Job>& jobs) {
    Holders holders;
    for (const Job& job : jobs) {
      if (!job.holds_nodes()) continue;
      for (const NodeName& node : job.nodes) holders[node].emplace(job.id, job.restart_count);
    }
    return holders;
  }

  void note_other_holders(const Holders& some, const Holders& others) {
    for (const auto& [node, jobs] : some) {
      const auto found = others.find(node);
      if (found == others.end() || found->second != jobs) changed_.insert(node);
    }
  }

  /// Jobs that have got or lost nodes since the look, in this life or in another one.
  void note_moved(const std::vector<Job>& then, const std::vector<Job>& now) {
    using Place = std::pair<std::uint32_t, std::vector<NodeName>>;
    std::unordered_map<JobId, Place> places;
    for (const Job& job : then) {
      if (job.holds_nodes()) places[job.id] = {job.restart_count, job.nodes};
    }
    for (const Job& job : now) {
      if (!job.holds_nodes()) continue;
      const auto found = places.find(job.id);
      if (found == places.end() || found->second != Place{job.restart_count, job.nodes})
        moved_.insert(job.id);
      else
        places.erase(found);
    }
    for (const auto& [id, place] : places) moved_.insert(id);
  }

  /// What an admin wants of a job depends on the job alone; what a rule wants, on its nodes as
  /// well: they may have come up.
  [[nodiscard]] bool has_moved(const Action& action,
                               JobId job,
                               const std::vector<NodeName>& nodes) const {
    return moved_.contains(job) || (action.rule != Rule::ByHand && any_changed(nodes));
  }

  bool give_up(const Error& error) {
    actor_.log.warning("action_failed",
                       {{"why", error.what}, {"then", "slurmctld is told in the next round"}});
    ++report_.failed;
    return false;
  }

  void refuse(const Demand::JobNodes& job, Refusal refusal) {
    refused_.jobs.push_back(job);
    refusals_.push_back(std::move(refusal));
  }

  /// It comes up, whether for the first time or, by a new POWER_UP, once more: that is no change.
  static bool is_coming(const Node& node) { return is_powering_up(node) || is_about_to_wake(node); }

  static bool has_changed(const Node& before, const Node& now) {
    return is_allocated(before) != is_allocated(now) || is_idle(before) != is_idle(now) ||
           is_down(before) != is_down(now) || is_coming(before) != is_coming(now) ||
           (is_powered_down(before) != is_powered_down(now) && !is_coming(now)) ||
           is_powering_down(before) != is_powering_down(now) ||
           is_draining(before) != is_draining(now) ||
           // An admin's undrain of a node that a power-down has undrained before.
           (!before.reason.empty() && now.reason.empty());
  }

  [[nodiscard]] bool any_changed(const std::vector<NodeName>& nodes) const {
    return std::any_of(
        nodes.begin(), nodes.end(), [&](const NodeName& node) { return changed_.contains(node); });
  }

  enum class Count { All, Failures };

  bool finish(const Action& action, const Result<Done>& got, Count count = Count::All) {
    if (got && count == Count::All) ++report_.done;
    if (got && count == Count::All) report_.note(action, "ok");
    if (got) return true;
    // A job that is over, or that cannot be requeued, is not worth an alarm.
    const bool is_passing =
        got.error().kind == ErrorKind::NotFound || got.error().kind == ErrorKind::Precondition;
    ++(is_passing ? report_.again : report_.failed);
    report_.note(action, is_passing ? "again" : "failed", got.error());
    is_away_ = is_away_ || got.error().kind == ErrorKind::Retry;
    actor_.log.warning(is_passing ? "action_again" : "action_failed",
                       {{"rule", to_string(action.rule)},
                        {"what", kind_text(action)},
                        {"job", job_of(action)},
                        {"nodes", fold_hostlist(nodes_of(action))},
                        {"kind", to_string(got.error().kind)},
                        {"why", got.error().what},
                        {"then", "looked at again in the next round"}});
    return false;
  }

  /// The signal matters most. The comment comes last: it also says that the job has been warned.
  void warn_job(const Action& action, const WarnJob& warn) {
    if (warn.signal != 0 &&
        !finish(action, actor_.scheduler.signal_job(warn.job, warn.signal), Count::Failures))
      return;
    // Not a second time, whatever becomes of the rest.
    actor_.memory.warned[warn.job] = {.ends = warn.ends, .restart_count = warn.restart_count};
    // A job that has no output to write to has still been warned.
    if (!warn.line.empty()) {
      const auto line = actor_.scheduler.notify_job(warn.job, warn.line);
      if (!line)
        actor_.log.debug("no_line_in_output", {{"job", warn.job}, {"why", line.error().what}});
    }
    if (!finish(action, actor_.scheduler.set_admin_comment(warn.job, warn.comment))) return;
    actor_.memory.notes[warn.job] = actor_.shot.now;
  }

  /// Others write into extra, too: what they have written by now stays. Nodes for which `change`
  /// returns what is there are left alone. One call serves all nodes with the same text.
  template <class Change>
  void change_extra(const Action& action, const std::vector<NodeName>& nodes, Change change) {
    if (noted_.empty()) {
      const auto loaded = actor_.scheduler.load_nodes();
      if (!loaded) {
        finish(action, loaded.error());
        return;
      }
      for (const Node& node : *loaded) noted_[node.name] = node;
    }
    std::map<std::string, std::vector<NodeName>> by_text;
    for (const NodeName& name : nodes) {
      const auto found = noted_.find(name);
      if (found == noted_.end()) continue;
      std::string text = change(found->second);
      if (text != found->second.extra) by_text[std::move(text)].push_back(name);
    }
    for (const auto& [text, names] : by_text) {
      if (is_away_) return;
      if (!finish(action, actor_.scheduler.set_node_extra(names, text))) continue;
      for (const NodeName& name : names) noted_[name].extra = text;
    }
  }

  void note_lease(const Action& action, const NoteLease& note) {
    change_extra(action, note.nodes, [&](const Node& node) {
      // Writing anything to a node that is not drained makes slurmctld clear its reason, which
      // says that a power-down has taken the drain: first it is put back.
      const bool is_lost =
          drain_note(node.extra) && !is_draining(node) && !is_down(node) && !node.reason.empty();
      return is_lost ? node.extra : with_lease(node.extra, note.lease);
    });
  }

  /// By what slurmctld says of the nodes now: an admin may have been faster.
  void note_drain(const Action& action, const NoteDrain& note) {
    change_extra(action, note.nodes, [&](const Node& node) {
      const bool is_drained = is_draining(node) || is_down(node);
      // Another rule may have drained it in this round: that is no admin's.
      const bool is_ours = node.reason.starts_with(kNotePrefix);
      if (note.reason.empty())
        return is_drained && !is_ours ? node.extra : without_drain_note(node.extra);
      const bool is_same = is_drained && node.reason == note.reason;
      return is_same ? with_drain_note(node.extra, note.reason) : node.extra;
    });
  }

  /// Whatever has become of it since the look: in the end it is there with these nodes.
  Result<Done> set_reservation(const SetReservation& set) {
    Scheduler& slurm = actor_.scheduler;
    auto done = set.is_new ? slurm.create_reservation(set.reservation)
                           : slurm.update_reservation(set.reservation);
    if (done) return done;
    if (set.is_new && done.error().kind == ErrorKind::AlreadyExists)
      return slurm.update_reservation(set.reservation);
    if (!set.is_new && done.error().kind == ErrorKind::NotFound)
      return slurm.create_reservation(set.reservation);
    return done;
  }

  static constexpr std::string_view kGap = "what takes its place could not be made";
  static constexpr std::string_view kRenoted = "its comment has changed since it was looked at";

  void postpone(const Action& action,
                std::string_view why = "slurmctld has changed the node since it was looked at") {
    ++report_.again;
    report_.known[&action].add("again", std::string(why));
    actor_.log.info("action_again",
                    {{"rule", to_string(action.rule)},
                     {"what", kind_text(action)},
                     {"job", job_of(action)},
                     {"nodes", fold_hostlist(nodes_of(action))},
                     {"why", why}});
  }

  void postpone_waking(const Action& action, const std::vector<NodeName>& waking) {
    constexpr std::string_view kWhy = "slurmctld has not carried out its POWER_UP yet";
    if (waking.empty()) return;
    ++report_.again;
    report_.waking.insert(report_.waking.end(), waking.begin(), waking.end());
    report_.known[&action].add("again", std::string(kWhy));
    actor_.log.info("action_again",
                    {{"rule", to_string(action.rule)},
                     {"what", kind_text(action)},
                     {"nodes", fold_hostlist(waking)},
                     {"why", kWhy}});
  }

  Result<Done> send_rest(const UpdateNodes& update, const std::vector<NodeName>& nodes) {
    if (update.request == NodeRequest::Drain)
      return drain_nodes(actor_.scheduler, nodes, update.reason);
    if (update.request == NodeRequest::Undrain) return undrain_nodes(actor_.scheduler, nodes);
    return actor_.scheduler.update_nodes(nodes, update.request, update.reason);
  }

  /// Which of the nodes it was done for.
  std::vector<NodeName> send(const Action& action,
                             const UpdateNodes& update,
                             const std::vector<NodeName>& nodes) {
    if (takes_down(update.request)) {
      TakenDown taken =
          take_down(actor_.scheduler,
                    actor_.config,
                    {.request = update.request, .nodes = nodes, .reason = update.reason});
      finish(action, taken.result, Count::Failures);
      postpone_waking(action, taken.waking);
      return std::move(taken.done);
    }
    const bool ok = finish(action, send_rest(update, nodes), Count::Failures);
    return ok ? nodes : std::vector<NodeName>{};
  }

  void update_nodes(const Action& action, const UpdateNodes& update) {
    std::vector<NodeName> nodes;
    for (const NodeName& node : update.nodes) {
      if (!changed_.contains(node)) nodes.push_back(node);
    }
    if (nodes.size() < update.nodes.size()) postpone(action);
    if (update.only_without_vm) drop_backed(nodes);
    if (nodes.empty()) return;
    const std::vector<NodeName> done = send(action, update, nodes);
    if (done.empty()) return;
    ++report_.done;
    report_.note(action, done, "ok");
    if (action.rule == Rule::KeepWaiting) {
      for (const NodeName& node : done) actor_.memory.armed[node] = actor_.shot.now;
    }
  }

  /// A VM comes only where one of them waits: in a group that has an entry or a request of it, or
  /// in none.
  static bool may_hold(const SweptGroup& group, const std::unordered_set<NodeName>& nodes) {
    if (group.group.kind == GroupKind::Loose) return true;
    for (const Instance& entry : group.instances) {
      if (nodes.contains(entry.name)) return true;
    }
    return std::any_of(
        group.requests.begin(), group.requests.end(), [&](const ResizeRequest& request) {
          return request.is_active() &&
                 (request.nodes.empty() ||
                  std::any_of(request.nodes.begin(), request.nodes.end(), [&](const auto& node) {
                    return nodes.contains(node);
                  }));
        });
  }

  /// Looks once more: a VM that has come in the meantime must not meet a new POWER_UP. If that
  /// cannot be seen, nothing is done.
  void drop_backed(std::vector<NodeName>& nodes) {
    std::unordered_set<std::string> nodesets;
    for (const NodeName& node : nodes)
      nodesets.insert(actor_.config.nodesets[actor_.config.find(node)->nodeset].name);
    std::unordered_set<NodeName> backed;
    bool is_complete = true;
    bool has_asked_loose = false;
    actor_.cloud.set_deadline(std::chrono::steady_clock::now() + actor_.config.api.call_timeout);
    const std::unordered_set<NodeName> wanted(nodes.begin(), nodes.end());
    for (const SweptGroup& group : actor_.shot.groups) {
      if (!nodesets.contains(group.nodeset) || !may_hold(group, wanted)) continue;
      const auto note = [&](const Result<std::vector<Instance>>& got) {
        if (!got) {
          is_complete = is_complete && got.error().kind == ErrorKind::NotFound;
          return;
        }
        for (const Instance& instance : *got) {
          if (!instance.is_queued() && !instance.is_dead()) backed.insert(instance.name);
        }
      };
      if (group.group.kind != GroupKind::Loose)
        actor_.cloud.fetch_instances(group.group.name, note);
      else if (!std::exchange(has_asked_loose, true))  // one answer for all nodesets
        actor_.cloud.fetch_loose_instances(actor_.shot.cluster, {}, note);
    }
    actor_.cloud.run();
    if (!is_complete) {
      actor_.log.warning("action_again",
                         {{"rule", to_string(Rule::KeepWaiting)},
                          {"nodes", fold_hostlist(nodes)},
                          {"why", "whether they have VMs by now cannot be seen"}});
      ++report_.again;
      return nodes.clear();
    }
    std::erase_if(nodes, [&](const NodeName& node) { return backed.contains(node); });
  }

  Actor& actor_;
  ActReport& report_;
  std::unordered_set<JobId> renoted_{};  ///< whose comment has changed since the look
  std::unordered_set<NodeName> changed_{};
  std::unordered_set<JobId> moved_{};
  std::set<JobId> requeued_{};                  ///< or cancelled
  std::unordered_map<NodeName, Node> noted_{};  ///< as slurmctld has them now
  Demand refused_{};
  std::vector<Refusal> refusals_{};
  std::vector<const Action*> given_back_{};
  bool is_away_ = false;
  bool has_gap_ = false;  ///< a reservation that was to keep jobs off nodes could not be made
};

}  // namespace

void act_on_slurm(Actor& actor, const std::vector<Action>& actions, ActReport& report) {
  std::vector<const Action*> ordered;
  for (const Action& action : actions) {
    if (SlurmActor::touches_slurm(action)) ordered.push_back(&action);
  }
  const bool has_asked = !actor.asked.outcomes.empty() || !actor.asked.plan.refusals.empty();
  if (ordered.empty() && !has_asked) return;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Action* left, const Action* right) {
    return SlurmActor::order(*left) < SlurmActor::order(*right);
  });
  SlurmActor slurm{actor, report};
  const bool is_harmless =
      !has_asked && std::all_of(ordered.begin(), ordered.end(), [](const Action* action) {
        return SlurmActor::moves_nothing(*action);
      });
  if (!is_harmless && !slurm.prepare()) return;
  slurm.find_renoted(ordered);
  const auto first_node =
      std::stable_partition(ordered.begin(), ordered.end(), [](const Action* action) {
        return SlurmActor::order(*action) < SlurmActor::kNodes;
      });
  const auto carry_out = [&](auto begin, auto end) {
    for (auto at = begin; at != end && !actor.should_stop() && !slurm.is_away(); ++at)
      slurm.carry_out(**at);
  };
  carry_out(ordered.begin(), first_node);
  if (actor.should_stop() || slurm.is_away()) return;
  slurm.give_back();
  carry_out(first_node, ordered.end());
}

}  // namespace flex
