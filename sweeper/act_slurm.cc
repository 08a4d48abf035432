// SPDX-License-Identifier: GPL-2.0-or-later
// What the actions ask of slurmctld. Between the look and this moment a job may have been put on a
// node: what has changed is left alone until the next round.
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/act.h"

#include <algorithm>
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
  bool prepare(const std::vector<Action>& actions) {
    const bool is_needed = std::any_of(actions.begin(), actions.end(), [](const Action& action) {
      return !std::holds_alternative<TellJob>(action.what) && touches_slurm(action);
    });
    if (!is_needed) return true;
    auto now = actor_.scheduler.load_nodes();
    if (!now) {
      actor_.log.warning(
          "action_failed",
          {{"why", now.error().what}, {"then", "slurmctld is told in the next round"}});
      ++report_.failed;
      return false;
    }
    std::unordered_map<NodeName, const Node*> before;
    for (const Node& node : actor_.shot.nodes.items) before[node.name] = &node;
    for (const Node& node : *now) {
      const auto found = before.find(node.name);
      if (found == before.end() || has_changed(*found->second, node)) changed_.insert(node.name);
    }
    return true;
  }

  void carry_out(const Action& action) {
    if (const auto* tell = std::get_if<TellJob>(&action.what)) {
      if (finish(action, actor_.scheduler.set_admin_comment(tell->job, tell->comment)))
        actor_.memory.notes[tell->job] = actor_.shot.now;
    } else if (const auto* back = std::get_if<GiveJobBack>(&action.what)) {
      give_back(action, *back);
    } else if (const auto* requeue = std::get_if<RequeueJob>(&action.what)) {
      if (any_changed(requeue->nodes)) return postpone(action);
      if (!requeued_.insert(requeue->job).second) return;  // another part of the same job
      finish(action,
             requeue->hold ? actor_.scheduler.requeue_and_hold(requeue->job)
                           : actor_.scheduler.requeue(requeue->job));
      // Its nodes are idle now, which is no news.
    } else if (const auto* update = std::get_if<UpdateNodes>(&action.what)) {
      update_nodes(action, *update);
    }
  }

  static bool touches_slurm(const Action& action) {
    return std::holds_alternative<TellJob>(action.what) ||
           std::holds_alternative<GiveJobBack>(action.what) ||
           std::holds_alternative<RequeueJob>(action.what) ||
           std::holds_alternative<UpdateNodes>(action.what);
  }

  /// Comments before what ends or moves a job, jobs before their nodes.
  static int order(const Action& action) {
    if (std::holds_alternative<TellJob>(action.what)) return 0;
    if (std::holds_alternative<GiveJobBack>(action.what)) return 1;
    if (std::holds_alternative<RequeueJob>(action.what)) return 2;
    return 3;
  }

 private:
  static bool has_changed(const Node& before, const Node& now) {
    return is_allocated(before) != is_allocated(now) || is_idle(before) != is_idle(now) ||
           is_down(before) != is_down(now) || is_powering_up(before) != is_powering_up(now) ||
           is_powered_down(before) != is_powered_down(now) ||
           is_powering_down(before) != is_powering_down(now) ||
           is_power_up_requested(before) != is_power_up_requested(now) ||
           is_draining(before) != is_draining(now);
  }

  [[nodiscard]] bool any_changed(const std::vector<NodeName>& nodes) const {
    return std::any_of(
        nodes.begin(), nodes.end(), [&](const NodeName& node) { return changed_.contains(node); });
  }

  bool finish(const Action& action, const Result<Done>& got) {
    if (got) {
      ++report_.done;
      return true;
    }
    // A job that is over, or that cannot be requeued, is not worth an alarm.
    const bool is_passing =
        got.error().kind == ErrorKind::NotFound || got.error().kind == ErrorKind::Precondition;
    ++(is_passing ? report_.again : report_.failed);
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

  void postpone(const Action& action) {
    ++report_.again;
    actor_.log.info("action_again",
                    {{"rule", to_string(action.rule)},
                     {"what", kind_text(action)},
                     {"job", job_of(action)},
                     {"nodes", fold_hostlist(nodes_of(action))},
                     {"why", "slurmctld has changed the node since it was looked at"}});
  }

  void give_back(const Action& action, const GiveJobBack& back) {
    if (any_changed(back.job.nodes)) return postpone(action);
    Demand demand;
    demand.jobs.push_back(back.job);
    ResumePlan plan;
    plan.refusals.push_back({.job = back.job.job.id, .nodes = back.job.nodes, .error = back.error});
    ++(apply_to_slurm(actor_.scheduler, {demand, plan, {}}, actor_.log) ? report_.done
                                                                        : report_.failed);
  }

  void update_nodes(const Action& action, const UpdateNodes& update) {
    std::vector<NodeName> nodes;
    for (const NodeName& node : update.nodes) {
      if (!changed_.contains(node)) nodes.push_back(node);
    }
    if (nodes.size() < update.nodes.size()) postpone(action);
    if (update.only_without_vm) drop_backed(nodes);
    if (nodes.empty()) return;
    const bool ok =
        finish(action, actor_.scheduler.update_nodes(nodes, update.request, update.reason));
    if (ok && action.rule == Rule::KeepWaiting) {
      for (const NodeName& node : nodes) actor_.memory.armed[node] = actor_.shot.now;
    }
  }

  /// Looks once more: a VM that has come in the meantime must not meet a new POWER_UP. If that
  /// cannot be seen, nothing is done.
  void drop_backed(std::vector<NodeName>& nodes) {
    std::unordered_set<std::string> nodesets;
    for (const NodeName& node : nodes)
      nodesets.insert(actor_.config.nodesets[actor_.config.find(node)->nodeset].name);
    std::unordered_set<NodeName> backed;
    bool is_complete = true;
    for (const SweptGroup& group : actor_.shot.groups) {
      if (!nodesets.contains(group.nodeset)) continue;
      actor_.cloud.fetch_instances(group.group.name, [&](const Result<std::vector<Instance>>& got) {
        if (!got) {
          is_complete = is_complete && got.error().kind == ErrorKind::NotFound;
          return;
        }
        for (const Instance& instance : *got) {
          if (!instance.is_queued() && !instance.is_dead()) backed.insert(instance.name);
        }
      });
    }
    actor_.cloud.run();
    if (!is_complete) return nodes.clear();
    std::erase_if(nodes, [&](const NodeName& node) { return backed.contains(node); });
  }

  Actor& actor_;
  ActReport& report_;
  std::unordered_set<NodeName> changed_{};
  std::set<JobId> requeued_{};
};

}  // namespace

void act_on_slurm(Actor& actor, const std::vector<Action>& actions, ActReport& report) {
  std::vector<const Action*> ordered;
  for (const Action& action : actions) {
    if (SlurmActor::touches_slurm(action)) ordered.push_back(&action);
  }
  if (ordered.empty()) return;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Action* left, const Action* right) {
    return SlurmActor::order(*left) < SlurmActor::order(*right);
  });
  SlurmActor slurm{actor, report};
  if (!slurm.prepare(actions)) return;
  for (const Action* action : ordered) {
    if (actor.should_stop()) return;
    slurm.carry_out(*action);
  }
}

}  // namespace flex
