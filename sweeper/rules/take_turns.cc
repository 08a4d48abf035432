// SPDX-License-Identifier: GPL-2.0-or-later
// take_turns: what the other rules want to ask for is planned and put before the admission
// (lib/provision/admission.h): longest waiting first, as far as there is room for requests in the
// region and for nodes in a nodeset. The rest keeps its place and is told so.
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/provision/node_use.h"
#include "resume/admit.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

class TurnTaker {
 public:
  explicit TurnTaker(Round& round) : round_(round) {}

  void run() {
    std::sort(round_.turns.begin(), round_.turns.end(), [](const Turn& left, const Turn& right) {
      return is_before(left, right);
    });
    states_.resize(round_.turns.size());
    std::map<PlanOptions, std::vector<const Turn*>> by_options;
    for (std::size_t i = 0; i < round_.turns.size(); ++i) {
      const Turn& turn = round_.turns[i];
      states_[i].ask = to_ask(turn);
      states_[i].why = turn.why;
      for (const NodeName& node : turn.nodes) turn_of_.emplace(node, i);
      if (turn.is_ready)
        by_options[turn.options].push_back(&turn);
      else
        add_nodes(states_[i].ask, round_.config, turn.nodes);
    }
    for (const auto& [options, turns] : by_options) plan(options, turns);
    std::vector<PendingAsk> asks;
    for (std::size_t i = 0; i < states_.size(); ++i) asks.push_back(ask_of(i));
    const std::vector<Admission> admissions = admit_requests(asks, limits(asks));
    for (std::size_t i = 0; i < states_.size(); ++i) take(i, admissions[i]);
    ask();
  }

 private:
  struct State {
    PendingAsk ask{};
    std::string why{};  ///< of the action
    bool is_granted = false;
    bool is_try = false;      ///< granted, but Google was full
    bool is_planned = false;  ///< there is something to ask for
    bool is_refused = false;  ///< by the planner, or for good: nothing of it is asked for
    std::vector<Placed<ResizeRequest>> replaced{};  ///< whose slots it may take
  };

  void plan(const PlanOptions& options, const std::vector<const Turn*>& turns) {
    AskForNodes& ask = plans_[options] = plan_for(round_, turns, options);
    for (const GroupPlan& group : ask.plan.groups) {
      for (const PlannedRequest& request : group.requests) {
        State& state = state_of(request.spec.nodes.front());
        state.is_planned = true;
        if (group.spec.kind == GroupKind::Queued) ++state.ask.requests;
        add_nodes(state.ask, round_.config, request.spec.nodes);
        if (const Job* job = round_.picture.find_job(request.job))
          add_whole(state.ask, round_.config, *job);
      }
    }
    // All of what belongs together, or nothing.
    for (const Refusal& refusal : ask.plan.refusals) {
      State& state = state_of(refusal.nodes.front());
      state.is_planned = state.is_refused = true;
    }
  }

  State& state_of(const NodeName& node) { return states_[turn_of_.at(node)]; }

  PendingAsk ask_of(std::size_t index) {
    State& state = states_[index];
    if (state.is_refused) {
      state.ask.requests = 0;
      state.ask.nodes.clear();
    }
    if (state.ask.requests > 0) state.replaced = find_replaced(round_.turns[index]);
    state.ask.replaces = state.replaced.size();
    return state.ask;
  }

  /// Requests for nodes of the turn only that what it asks for takes the place of, and that can be
  /// cancelled now.
  [[nodiscard]] std::vector<Placed<ResizeRequest>> find_replaced(const Turn& turn) const {
    std::vector<Placed<ResizeRequest>> replaced;
    if (!turn.options.is_second || turn.options.only_missing) return replaced;
    const NodePicture& first = *round_.picture.find(turn.nodes.front());
    const RequestWay way{
        .attempt = turn.options.attempt,
        .step = turn.options.step,
        .renewed = turn.options.renewed,
        .failures = turn.options.failures,
        .is_race = routes_of(round_.nodeset_of(first), turn.options.step).front().is_race};
    const std::unordered_set<NodeName> mine(turn.nodes.begin(), turn.nodes.end());
    std::set<const ResizeRequest*> known;
    for (const NodeName& name : turn.nodes) {
      for (const Placed<ResizeRequest>& request : round_.picture.find(name)->requests) {
        const bool is_replaced =
            request->state == RequestState::Accepted && is_our_request(*request) &&
            way.follows(request_way(*request)) && round_.is_free(*request.group, *request) &&
            std::all_of(request->nodes.begin(), request->nodes.end(), [&](const NodeName& node) {
              return mine.contains(node);
            });
        if (is_replaced && known.insert(request.item).second) replaced.push_back(request);
      }
    }
    return replaced;
  }

  [[nodiscard]] AdmissionLimits limits(const std::vector<PendingAsk>& asks) const {
    std::set<std::size_t> nodesets;
    for (const PendingAsk& ask : asks) {
      for (const auto& [nodeset, nodes] : ask.nodes) nodesets.insert(nodeset);
    }
    const FleetView fleet = round_.picture.fleet_of({nodesets.begin(), nodesets.end()});
    return {.region = round_.config.region,
            .most = round_.config.api.max_active_requests,
            .active = count_active_requests(round_.shot),
            .quota = round_.memory.requests,
            .now = round_.shot.now,
            .probe_pause = 4 * round_.config.sweeper.interval,
            .nodesets = find_room({.config = round_.config,
                                   .cluster = round_.shot.cluster,
                                   .fleet = fleet,
                                   .asked = round_.shot.asked})};
  }

  void take(std::size_t index, const Admission& admission) {
    const Turn& turn = round_.turns[index];
    State& state = states_[index];
    for (const std::size_t nodeset : admission.full)
      ++round_.waiting_nodesets[round_.config.nodesets[nodeset].name];
    // Another's request brings its nodes, too.
    if (!turn.is_ready || !state.is_planned) return;
    switch (admission.verdict) {
      case AdmissionVerdict::Wait:
        if (admission.waits_for_request && !turn.is_extra) ++round_.waiting;
        return note(turn, admission);
      case AdmissionVerdict::Never:
        refuse(index, admission.why);
        break;
      case AdmissionVerdict::Replace:
        state.why +=
            fmt::format("; {}: it takes the place of the request before it", admission.why);
        for (const Placed<ResizeRequest>& request : state.replaced)
          round_.claim_request(*request.group, *request);
        break;
      case AdmissionVerdict::Ask:
        state.replaced.clear();
        state.is_try = admission.is_try;
        if (state.is_try) note(turn, admission);
        break;
    }
    state.is_granted = true;
  }

  /// There is never room for it: its jobs are given back.
  void refuse(std::size_t index, const std::string& why) {
    states_[index].is_refused = true;
    AskForNodes& ask = plans_.at(round_.turns[index].options);
    for (const Demand::JobNodes& wanted : ask.demand.jobs) {
      if (turn_of_.at(wanted.nodes.front()) == index)
        ask.plan.refusals.push_back({.job = wanted.job.id,
                                     .nodes = wanted.nodes,
                                     .error = {ErrorKind::Invalid, why, "MAX_NODES"}});
    }
  }

  /// For the job that waits, or all parts of a heterogeneous one.
  void note(const Turn& turn, const Admission& admission) {
    const Job* const first = round_.picture.find_job(turn.job);
    if (first == nullptr || turn.is_extra) return;
    const std::string text = note_turn({.why = admission.why,
                                        .before = admission.before,
                                        .since = turn.since,
                                        .now = round_.shot.now});
    for (const Job* job : jobs_on(round_.picture, turn.nodes)) {
      if (leader_of(*job) == leader_of(*first)) round_.turn_notes[job->id] = text;
    }
  }

  /// One action for all that have the same reason.
  void ask() {
    std::map<std::tuple<Rule, PlanOptions, std::string>, std::set<std::size_t>> granted;
    for (std::size_t i = 0; i < round_.turns.size(); ++i) {
      const Turn& turn = round_.turns[i];
      if (!states_[i].is_granted) continue;
      // What is only tried may go on waiting: keep_waiting sees to it.
      if (!states_[i].is_try) round_.claim(turn.nodes);
      granted[{turn.rule, turn.options, states_[i].why}].insert(i);
    }
    for (const auto& [what, turns] : granted) {
      const auto& [rule, options, why] = what;
      round_.add(rule, why, part_of(plans_.at(options), turns));
    }
  }

  [[nodiscard]] AskForNodes part_of(const AskForNodes& whole,
                                    const std::set<std::size_t>& turns) const {
    const auto is_other = [&](const NodeName& node) { return !turns.contains(turn_of_.at(node)); };
    AskForNodes part = whole;
    for (GroupPlan& group : part.plan.groups) {
      std::erase_if(group.requests, [&](const PlannedRequest& request) {
        const NodeName& first = request.spec.nodes.front();
        return is_other(first) || states_[turn_of_.at(first)].is_refused;
      });
    }
    std::erase_if(part.plan.groups, [](const GroupPlan& group) { return group.requests.empty(); });
    std::erase_if(part.plan.refusals,
                  [&](const Refusal& refusal) { return is_other(refusal.nodes.front()); });
    std::erase_if(part.demand.jobs,
                  [&](const Demand::JobNodes& job) { return is_other(job.nodes.front()); });
    std::erase_if(part.demand.jobless, is_other);
    std::erase_if(part.demand.on_static,
                  [&](const Demand::JobNodes& on) { return is_other(on.nodes.front()); });
    std::erase_if(part.plan.capped, [&](const CappedJob& capped) {
      return std::none_of(part.demand.jobs.begin(), part.demand.jobs.end(), [&](const auto& job) {
        return job.job.id == capped.job;
      });
    });
    for (const std::size_t turn : turns) {
      for (const Placed<ResizeRequest>& request : states_[turn].replaced)
        part.plan.cancels.push_back({.group = request.group->group.name,
                                     .request = request->name,
                                     .job = request_job(*request),
                                     .nodes = request->nodes,
                                     .why = states_[turn].why});
    }
    return part;
  }

  Round& round_;
  std::vector<State> states_{};
  std::unordered_map<NodeName, std::size_t> turn_of_{};
  std::map<PlanOptions, AskForNodes> plans_{};
};

}  // namespace

void take_turns(Round& round) {
  if (!round.turns.empty()) TurnTaker{round}.run();
}

}  // namespace flex
