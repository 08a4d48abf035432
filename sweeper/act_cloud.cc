// SPDX-License-Identifier: GPL-2.0-or-later
// What the actions ask of Compute Engine. Everything is started, then the cloud runs once.
#include "lib/core/duration.h"
#include "lib/core/state_file.h"
#include "lib/fleet/cancelled.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/queue.h"
#include "lib/gce/errors.h"
#include "lib/provision/node_use.h"
#include "lib/slurm/hostlist.h"
#include "resume/admit.h"
#include "resume/events.h"
#include "resume/wanted.h"
#include "sweeper/act.h"
#include "sweeper/queue.h"
#include "sweeper/rules.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// A name that is still being deleted is waited for only a moment: the next round comes soon.
constexpr NameWait kWait{.poll = std::chrono::milliseconds{500}, .limit = 4, .settle = true};

class CloudActor {
 public:
  CloudActor(Actor& actor, ActReport& report) : actor_(actor), report_(report) {}

  void start(const Action& action) {
    if (const auto* cancel = std::get_if<CancelRequest>(&action.what)) {
      actor_.cloud.cancel_request(cancel->group, cancel->request, finish(action));
    } else if (const auto* request = std::get_if<DeleteRequest>(&action.what)) {
      actor_.cloud.delete_request(request->group, request->request, finish(action));
    } else if (const auto* group = std::get_if<DeleteGroup>(&action.what)) {
      actor_.cloud.delete_group(group->group, finish(action));
    } else if (const auto* policy = std::get_if<DeletePolicy>(&action.what)) {
      actor_.cloud.delete_policy(policy->name, finish(action));
    } else if (const auto* doomed = std::get_if<DeleteInstances>(&action.what)) {
      remove(action, *doomed);
    } else if (const auto* ask = std::get_if<AskForNodes>(&action.what)) {
      asks_.push_back(ask);
      for (const NodeName& node : nodes_of(action)) askers_[node] = &action;
    }
  }

  /// Runs all that was started, the requests for VMs among it.
  void run() {
    Asked& asked = actor_.asked;
    for (const AskForNodes* ask : asks_) merge(asked.plan, asked.demand, *ask);
    const bool is_reserved = reserve(asked);
    asked_before_ = find_asked();
    TurnsTaken turns{.active = count_active_requests(actor_.shot), .now = actor_.shot.now};
    turns.active -= std::min(turns.active, cancel_replaced(asked.plan));
    WantedNow wanted{actor_.scheduler, asked.plan};
    // Nodes without a job are wanted by a rule, whatever slurmctld says of them.
    asked.outcomes =
        apply_to_cloud(actor_.cloud, asked.plan, kWait, [&wanted](const PlannedRequest& request) {
          return request.job == 0 || wanted(request);
        });
    // VMs that are asked for directly take no place in the queue.
    turns.taken = static_cast<std::size_t>(std::count_if(
        asked.outcomes.begin(), asked.outcomes.end(), [](const RequestOutcome& outcome) {
          return outcome.result == RequestResult::Requested && !outcome.request.spec.name.empty();
        }));
    note_cancelled(
        take_back(actor_.cloud, find_parts(asked.demand, asked.outcomes), asked.outcomes));
    if (is_reserved) settle(asked.outcomes);
    for (RequestOutcome& outcome : asked.outcomes) count_attempt(outcome);
    for (RequestOutcome& outcome : asked.outcomes) heed_zone(outcome);
    spare_asked(asked.outcomes, asked.plan.refusals, asked_before_);
    for (const RequestOutcome& outcome : asked.outcomes) {
      report_.events.push_back(event_of(like(outcome.request.spec.nodes), outcome));
      note(outcome);
    }
    for (const Refusal& refusal : asked.plan.refusals) {
      report_.events.push_back(event_of(like(refusal.nodes), refusal));
      note(refusal);
    }
    turns.refused = full_;
    learn(actor_.memory.requests, turns, actor_.config.api.max_active_requests);
  }

 private:
  /// Writes down what counts for max_nodes. Others may have asked for nodes since the look: what
  /// does not fit beside them waits. True if there is something to be settled.
  bool reserve(Asked& asked) {
    const Config& config = actor_.config;
    if (actor_.asked_file == nullptr || limited_nodes(config, asked.plan).empty()) return false;
    ResumePlan plan = asked.plan;
    const auto reserved = actor_.asked_file->reserve(wall_clock(), [&](const AskedNodes& others) {
      keep_to_max_nodes(config, asked.demand, find_room(others), actor_.shot.now, plan);
      return limited_nodes(config, plan);
    });
    if (!reserved) {
      actor_.log.warning("asked_not_written",
                         {{"why", reserved.error().what},
                          {"then", "nothing is asked for where max_nodes counts"}});
      plan = asked.plan;
      for (LeftAsk& ask : leave_limited(config, asked.demand, reserved.error().what, plan))
        plan.refusals.push_back({.job = ask.job,
                                 .nodes = std::move(ask.nodes),
                                 .error = {ErrorKind::Quota, std::move(ask.why), "MAX_NODES"}});
    }
    asked.plan = std::move(plan);
    keep_unreplaced(asked.plan);
    return reserved && !limited_nodes(config, asked.plan).empty();
  }

  /// A request stays if what was to take its place is not asked for.
  static void keep_unreplaced(ResumePlan& plan) {
    std::unordered_set<NodeName> asked;
    for (const GroupPlan& group : plan.groups) {
      for (const PlannedRequest& request : group.requests)
        asked.insert(request.spec.nodes.begin(), request.spec.nodes.end());
    }
    std::erase_if(plan.cancels, [&](const PlannedCancel& cancel) {
      return !asked.contains(cancel.nodes.front());
    });
  }

  static TimePoint wall_clock() {
    return std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  }

  [[nodiscard]] std::map<std::size_t, NodesetRoom> find_room(const AskedNodes& others) const {
    std::vector<std::size_t> nodesets;
    for (std::size_t i = 0; i < actor_.config.nodesets.size(); ++i) {
      if (actor_.config.nodesets[i].max_nodes != 0) nodesets.push_back(i);
    }
    return flex::find_room({.config = actor_.config,
                            .cluster = actor_.shot.cluster,
                            .fleet = fleet_of(actor_.config, actor_.shot, nodesets),
                            .asked = find_unseen(others, actor_.shot.now, wall_clock())});
  }

  void settle(const std::vector<RequestOutcome>& outcomes) {
    const auto settled = actor_.asked_file->settle(wall_clock(), answers_of(outcomes));
    if (settled) return;
    actor_.log.warning("asked_not_settled",
                       {{"why", settled.error().what},
                        {"then", "the nodes count for max_nodes for a quarter of an hour"}});
  }

  /// Requests whose slots are needed for those that take their place; how many are free now.
  std::size_t cancel_replaced(ResumePlan& plan) {
    const std::vector<CancelOutcome> outcomes = cancel_first(actor_.cloud, plan, true);
    note_cancelled(outcomes);
    std::size_t cancelled = 0;
    for (const CancelOutcome& outcome : outcomes) {
      if (outcome.error) continue;
      ++cancelled;
      for (const NodeName& node : outcome.cancel.nodes) asked_before_.erase(node);
    }
    return cancelled;
  }

  void note_cancelled(const std::vector<CancelOutcome>& outcomes) {
    for (const CancelOutcome& outcome : outcomes) {
      report_.events.push_back(event_of(like(outcome.cancel.nodes), outcome));
      const std::initializer_list<Field> fields = {
          {"job", outcome.cancel.job},
          {"nodes", fold_hostlist(outcome.cancel.nodes)},
          {"n", outcome.cancel.nodes.size()},
          {"group", outcome.cancel.group},
          {"request", outcome.cancel.request},
          {"why", outcome.error ? outcome.error->what : outcome.cancel.why}};
      if (outcome.error)
        actor_.log.warning("cancel_failed", fields);
      else
        actor_.log.info("cancelled", fields);
    }
  }

  /// The rule and the reason that these nodes were asked for.
  [[nodiscard]] Event like(const std::vector<NodeName>& nodes) const {
    const auto asker = askers_.find(nodes.front());
    return asker == askers_.end() ? Event{} : event_like(*asker->second);
  }

  /// The action that these nodes were asked for by.
  void note_asker(const std::vector<NodeName>& nodes,
                  std::string_view result,
                  const Error& error = {}) {
    const auto asker = askers_.find(nodes.front());
    if (asker != askers_.end()) report_.known[asker->second].add(result, error.what);
  }

  /// Counts the answer to a write. What is gone already is as it should be.
  Then<Operation> finish(const Action& action) {
    return [this, &action](const Result<Operation>& got) {
      if (got && got->is_done && got->error) return fail(action, to_error(*got->error));
      if (!got && got.error().kind != ErrorKind::NotFound) return fail(action, got.error());
      ++report_.done;
      report_.note(action, "ok");
    };
  }

  void fail(const Action& action, const Error& error) {
    const bool is_again = error.kind == ErrorKind::Precondition;
    const bool ends_wait =
        action.rule == Rule::ProvisionTimeout || action.rule == Rule::NoLongerEligible;
    if (is_again && ends_wait) {
      const std::vector<NodeName> nodes = nodes_of(action);
      actor_.served.insert(nodes.begin(), nodes.end());
    }
    ++(is_again ? report_.again : report_.failed);
    report_.note(action, is_again ? "again" : "failed", error);
    actor_.log.warning(is_again ? "action_again" : "action_failed",
                       {{"rule", to_string(action.rule)},
                        {"what", kind_text(action)},
                        {"target", target_of(action)},
                        {"kind", to_string(error.kind)},
                        {"why", error.what},
                        {"then", "looked at again in the next round"}});
  }

  void remove(const Action& action, const DeleteInstances& doomed) {
    if (!doomed.keep_serial_log || actor_.serial_dir.empty())
      return actor_.cloud.delete_instances(doomed.group, doomed.instances, finish(action));
    // First the logs, then the VMs: with the last log the deletion starts.
    auto left = std::make_shared<std::size_t>(doomed.instances.size());
    for (const Instance& instance : doomed.instances) {
      actor_.cloud.fetch_serial_output(
          instance, [this, left, &action, &doomed, &instance](const Result<std::string>& got) {
            keep(instance, got);
            if (--*left > 0) return;
            actor_.cloud.delete_instances(doomed.group, doomed.instances, finish(action));
          });
    }
  }

  void keep(const Instance& instance, const Result<std::string>& output) {
    if (!output) {
      return actor_.log.warning("no_serial_log",
                                {{"nodes", instance.name}, {"why", output.error().what}});
    }
    const std::string path = fmt::format("{}/{}-{:%Y%m%dT%H%M%S}.log",
                                         actor_.serial_dir,
                                         instance.name,
                                         fmt::gmtime(actor_.shot.now.time_since_epoch().count()));
    auto done = make_directory(actor_.serial_dir);
    if (done) done = write_atomically(path, *output);
    if (!done)
      return actor_.log.warning("no_serial_log",
                                {{"nodes", instance.name}, {"why", done.error().what}});
    actor_.log.info("serial_log", {{"nodes", instance.name}, {"file", path}});
    prune_serial_logs();
  }

  /// Keeps the newest.
  void prune_serial_logs() const {
    constexpr std::size_t kMostLogs = 100;
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<std::pair<fs::file_time_type, fs::path>> logs;
    for (fs::directory_iterator at(actor_.serial_dir, error), end; !error && at != end;
         at.increment(error))
      logs.emplace_back(at->last_write_time(error), at->path());
    if (logs.size() <= kMostLogs) return;
    std::sort(logs.begin(), logs.end());
    for (std::size_t i = 0; i < logs.size() - kMostLogs; ++i) fs::remove(logs[i].second, error);
  }

  static void merge(ResumePlan& plan, Demand& demand, const AskForNodes& ask) {
    for (const GroupPlan& group : ask.plan.groups) {
      const auto same =
          std::find_if(plan.groups.begin(), plan.groups.end(), [&](const GroupPlan& known) {
            return known.spec.name == group.spec.name;
          });
      if (same == plan.groups.end())
        plan.groups.push_back(group);
      else
        same->requests.insert(same->requests.end(), group.requests.begin(), group.requests.end());
    }
    const auto append = [](auto& all, const auto& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    append(plan.cancels, ask.plan.cancels);
    append(plan.refusals, ask.plan.refusals);
    append(demand.jobs, ask.demand.jobs);
    append(demand.jobless, ask.demand.jobless);
    append(demand.on_static, ask.demand.on_static);
  }

  /// What waits in Google's queue already.
  [[nodiscard]] std::unordered_set<NodeName> find_asked() const {
    std::unordered_set<NodeName> found;
    for (const SweptGroup& group : actor_.shot.groups) {
      for (const ResizeRequest& request : group.requests) {
        if (request.is_active()) found.insert(request.nodes.begin(), request.nodes.end());
      }
      if (group.group.kind == GroupKind::Queued) continue;
      for (const Instance& entry : group.instances) {
        if (entry.is_queued()) found.insert(entry.name);
      }
    }
    return found;
  }

  /// bulkInsert takes or refuses at once: a refusal for want of capacity is a failed attempt, as a
  /// failed request is. After the last one the job is given back.
  void count_attempt(RequestOutcome& outcome) {
    const bool is_loose = outcome.request.spec.group.empty();
    const NodeName& first = outcome.request.spec.nodes.front();
    if (!is_loose || outcome.result != RequestResult::Failed || outcome.request.job == 0 ||
        outcome.error.kind != ErrorKind::NoCapacity || asked_before_.contains(first))
      return;
    const NodesetConfig& nodeset = actor_.config.nodesets[actor_.config.find(first)->nodeset];
    RetryState& retry = actor_.memory.retries[first];
    retry.job = outcome.request.job;
    ++retry.attempts;
    // With another way to try, this one goes on until then.
    const bool is_last = outcome.request.way.step >= nodeset.on_stockout.size();
    if (nodeset.retry.limit == 0 || retry.attempts < nodeset.retry.limit || !is_last) return;
    outcome.error = {
        ErrorKind::Invalid,
        fmt::format("{} attempts failed, the last with: {}", retry.attempts, outcome.error.what),
        outcome.error.code};
  }

  [[nodiscard]] const NodesetConfig& nodeset_of(const NodeName& node) const {
    return actor_.config.nodesets[actor_.config.find(node)->nodeset];
  }

  /// Who waits for what was asked for: waiter_of() of the rules.
  [[nodiscard]] std::string waiter_of(const PlannedRequest& request) const {
    const NodeName& first = request.spec.nodes.front();
    return waiter_key(nodeset_of(first).name, request.job, first);
  }

  /// Not asked for again in this group before a pause is over, or not at all.
  void shut(const RequestOutcome& outcome) {
    const PlannedRequest& request = outcome.request;
    if (request.spec.group.empty()) return;
    shut_failed(actor_.memory,
                {.waiter = waiter_of(request),
                 .restart_count = request.key.restart_count,
                 .group = request.spec.group,
                 .policy = nodeset_of(request.spec.nodes.front()).retry,
                 .error = outcome.error},
                actor_.shot.now);
  }

  /// Another request of the same step, or of a later one, waits for the node.
  [[nodiscard]] bool waits_in_step(const NodeName& node, std::size_t step) const {
    const auto names = [&](const std::vector<NodeName>& nodes) {
      return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
    };
    for (const RequestOutcome& other : actor_.asked.outcomes) {
      const bool is_out =
          other.result == RequestResult::Requested || other.result == RequestResult::Existing;
      if (is_out && other.request.way.step >= step && names(other.request.spec.nodes)) return true;
    }
    for (const SweptGroup& group : actor_.shot.groups) {
      for (const ResizeRequest& request : group.requests) {
        if (request.is_active() && request_way(request).step >= step && names(request.nodes))
          return true;
      }
    }
    return false;
  }

  /// A zone that can never serve what it is asked for is not asked again by those who wait; the
  /// next entry of on_stockout is tried in the next round, if nothing else of the step is out.
  void heed_zone(RequestOutcome& outcome) {
    if (outcome.result != RequestResult::Failed || !is_of_zone(outcome.error)) return;
    shut(outcome);
    const NodeName& first = outcome.request.spec.nodes.front();
    const std::size_t step = outcome.request.way.step;
    if (step >= nodeset_of(first).on_stockout.size() || waits_in_step(first, step)) return;
    StockoutState& state = actor_.memory.stockouts[waiter_of(outcome.request)];
    if (state.step <= step)
      state = {.step = step + 1,
               .since = actor_.shot.now,
               .round = actor_.memory.round,
               .is_hopeless = true};
    stepped_over_.insert(first);
    outcome.error.kind = ErrorKind::NoCapacity;
  }

  void note(const RequestOutcome& outcome) {
    const RequestSpec& spec = outcome.request.spec;
    if (outcome.result == RequestResult::Unwanted) {
      ++report_.again;
      note_asker(spec.nodes, "again", {ErrorKind::Precondition, kNotWantedAnyMore, {}});
      return actor_.log.info("action_again",
                             {{"job", outcome.request.job},
                              {"nodes", fold_hostlist(spec.nodes)},
                              {"why", kNotWantedAnyMore}});
    }
    if (outcome.result != RequestResult::Failed) {
      ++report_.done;
      note_asker(spec.nodes, "done");
      return actor_.log.info(
          outcome.result == RequestResult::Requested ? "requested" : "requested_before",
          {{"job", outcome.request.job},
           {"nodes", fold_hostlist(spec.nodes)},
           {"n", spec.nodes.size()},
           {"run_s", spec.run_duration.count()},
           {"group", spec.group},
           {"request", spec.name},
           {"attempt", outcome.request.key.attempt}});
    }
    const bool is_extra = asked_before_.contains(spec.nodes.front());
    if (is_active_requests_quota(outcome.error) && is_extra) shut(outcome);
    note({.job = outcome.request.job, .nodes = spec.nodes, .error = outcome.error});
  }

  void note(const Refusal& refusal) {
    // Of a request that is just being served nothing is wrong.
    const bool is_turn = waits_for_turn(refusal.error) || refusal.error.code == "OTHER_REQUEST";
    note_asker(refusal.nodes, is_turn ? "again" : "failed", refusal.error);
    if (is_turn) {
      if (is_active_requests_quota(refusal.error)) {
        ++full_;
        if (!asked_before_.contains(refusal.nodes.front())) ++report_.waiting;
      }
      return actor_.log.info("waits_for_turn",
                             {{"job", refusal.job},
                              {"nodes", fold_hostlist(refusal.nodes)},
                              {"n", refusal.nodes.size()},
                              {"why", refusal.error.what},
                              {"then", "asked again in the next rounds, longest waiting first"}});
    }
    ++report_.failed;
    const NodeName& first = refusal.nodes.front();
    std::string then = "the job is given back";
    if (is_permanent(refusal.error)) {
      actor_.memory.retries.erase(first);
    } else if (stepped_over_.contains(first)) {
      actor_.memory.retries.erase(first);
      then = "the next entry of on_stockout is tried";
    } else {
      then = fmt::format("asked again after {}", format_slurm_time(postpone(refusal)));
    }
    actor_.log.error("request_failed",
                     {{"job", refusal.job},
                      {"nodes", fold_hostlist(refusal.nodes)},
                      {"n", refusal.nodes.size()},
                      {"kind", to_string(refusal.error.kind)},
                      {"why", refusal.error.what},
                      {"then", then}});
  }

  /// A refusal that will pass is not met again at once: passing trouble after a round or two, a
  /// quota (but that of active requests) or an answer that makes no sense after longer.
  Seconds postpone(const Refusal& refusal) {
    const NodeName& node = refusal.nodes.front();
    const Error& error = refusal.error;
    RetryConfig policy = actor_.config.nodesets[actor_.config.find(node)->nodeset].retry;
    RetryState& retry = actor_.memory.retries[node];
    retry.job = refusal.job;
    // All zones of a race may refuse it in one round.
    if (postponed_.insert(node).second) ++retry.refusals;
    Seconds delay = pause_after(policy, retry.refusals);
    if (error.kind == ErrorKind::Retry || error.kind == ErrorKind::Precondition) {
      policy.base = std::min(policy.base, actor_.config.sweeper.interval);
      delay = retry.refusals == 1 ? Seconds{0} : pause_after(policy, retry.refusals - 1);
    }
    retry.next = actor_.shot.now + delay;
    retry.why = error.what;
    // Nodes that no job holds together may be asked for one by one the next time: each of them
    // waits.
    if (refusal.job == 0) {
      const RetryState same = retry;
      for (const NodeName& other : refusal.nodes) actor_.memory.retries[other] = same;
    }
    return delay;
  }

  Actor& actor_;
  ActReport& report_;
  std::vector<const AskForNodes*> asks_{};
  std::unordered_map<NodeName, const Action*> askers_{};
  std::unordered_set<NodeName> asked_before_{};
  std::set<NodeName> postponed_{};     ///< in this round
  std::set<NodeName> stepped_over_{};  ///< first nodes of what the next entry of on_stockout is for
  std::size_t full_ = 0;               ///< refusals because too many requests are active
};

}  // namespace

void act_on_cloud(Actor& actor, const std::vector<Action>& actions, ActReport& report) {
  CloudActor cloud{actor, report};
  for (const Action& action : actions) cloud.start(action);
  cloud.run();
}

}  // namespace flex
