// SPDX-License-Identifier: GPL-2.0-or-later
// take_turns: what the other rules want to ask for, longest waiting first, as far as there is room:
// for requests in the region, and for nodes in a nodeset. The rest keeps its place and is told so.
#include "lib/core/job_note.h"
#include "lib/fleet/queue.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace flex {

namespace {

class TurnTaker {
 public:
  explicit TurnTaker(Round& round)
      : round_(round),
        active_(count_active_requests(round.shot)),
        most_(round.config.api.max_active_requests) {
    room_ = room_for_requests(most_, round.memory.requests, active_);
  }

  void run() {
    std::sort(round_.turns.begin(), round_.turns.end(), is_before);
    states_.resize(round_.turns.size());
    std::map<PlanOptions, std::vector<const Turn*>> by_options;
    for (std::size_t i = 0; i < round_.turns.size(); ++i) {
      const Turn& turn = round_.turns[i];
      states_[i].is_ready = turn.is_ready && is_of_first_plan(turn);
      for (const NodeName& node : turn.nodes) turn_of_.emplace(node, i);
      if (states_[i].is_ready) by_options[turn.options].push_back(&turn);
    }
    for (const auto& [options, turns] : by_options) plan(options, turns);
    for (std::size_t i = 0; i < round_.turns.size(); ++i) {
      if (states_[i].is_ready) grant(i);
    }
    ask();
  }

 private:
  struct State {
    bool is_ready = false;
    bool is_granted = false;
    bool is_try = false;             ///< granted, but Google was full
    bool is_planned = false;         ///< there is something to ask for
    std::size_t requests = 0;        ///< that it needs
    std::optional<Error> refusal{};  ///< of the planner, for want of room in the nodeset
  };

  [[nodiscard]] std::size_t nodeset_of(const NodeName& node) const {
    return round_.config.find(node)->nodeset;
  }

  /// Plans of different attempts do not know of each other: where nodes are counted, only one of
  /// them is made in a round.
  bool is_of_first_plan(const Turn& turn) {
    return std::all_of(turn.nodes.begin(), turn.nodes.end(), [&](const NodeName& node) {
      const std::size_t set = nodeset_of(node);
      return round_.config.nodesets[set].max_nodes == 0 ||
             options_of_.try_emplace(set, turn.options).first->second == turn.options;
    });
  }

  void plan(const PlanOptions& options, const std::vector<const Turn*>& turns) {
    AskForNodes& ask = plans_[options] = plan_for(round_, turns, options);
    for (const GroupPlan& group : ask.plan.groups) {
      for (const PlannedRequest& request : group.requests) {
        State& state = state_of(request.spec.nodes.front());
        state.is_planned = true;
        if (group.spec.kind == GroupKind::Queued) ++state.requests;
      }
    }
    for (const Refusal& refusal : ask.plan.refusals)
      state_of(refusal.nodes.front()).is_planned = true;
    std::erase_if(ask.plan.refusals, [&](const Refusal& refusal) {
      if (!is_max_nodes(refusal.error)) return false;
      state_of(refusal.nodes.front()).refusal = refusal.error;
      return true;
    });
  }

  State& state_of(const NodeName& node) { return states_[turn_of_.at(node)]; }

  void grant(std::size_t index) {
    const Turn& turn = round_.turns[index];
    State& state = states_[index];
    // Another's request brings its nodes, too.
    if (!state.is_planned) return;
    if (const Error* const full = full_nodeset(turn, state)) return hold(turn, full->what);
    if (state.requests > 0) {
      // One that needs more than there ever is begins when no other is there.
      const bool is_alone = active_ + asked_ == 0;
      if (is_full_ || (state.requests > room_ && !is_alone)) {
        is_full_ = true;
        if (!turn.is_extra) ++round_.waiting;
        return hold(turn, full_region());
      }
      const std::size_t limit = round_.memory.requests.limit;
      state.is_try = limit != 0 && active_ + asked_ + state.requests > limit;
      room_ -= std::min(room_, state.requests);
      asked_ += state.requests;
      if (state.is_try) note(turn, full_region());
    }
    state.is_granted = true;
  }

  /// Why a nodeset of the turn takes no more nodes; null: it does. Whoever comes after one that
  /// waits for room in the nodeset waits, too.
  const Error* full_nodeset(const Turn& turn, const State& state) {
    for (const NodeName& node : turn.nodes) {
      const std::size_t set = nodeset_of(node);
      if (state.refusal) full_nodesets_.try_emplace(set, *state.refusal);
      const auto full = full_nodesets_.find(set);
      if (full != full_nodesets_.end()) return &full->second;
    }
    return nullptr;
  }

  [[nodiscard]] std::string full_region() const {
    const std::string& region = round_.config.region;
    if (round_.memory.requests.limit == 0 || active_ + asked_ >= most_)
      return fmt::format(
          "{} of {} requests of region {} are in use", active_ + asked_, most_, region);
    return fmt::format(
        "Google takes no more requests in region {} (quota {})", region, kActiveRequestsQuota);
  }

  void hold(const Turn& turn, const std::string& why) {
    note(turn, why);
    ++held_;
  }

  void note(const Turn& turn, const std::string& why) {
    if (turn.job == 0 || turn.is_extra) return;
    round_.turn_notes[turn.job] =
        note_turn({.why = why, .before = held_, .since = turn.since, .now = round_.shot.now});
  }

  /// One action for all that have the same reason.
  void ask() {
    std::map<std::tuple<Rule, PlanOptions, std::string>, std::set<std::size_t>> granted;
    for (std::size_t i = 0; i < round_.turns.size(); ++i) {
      const Turn& turn = round_.turns[i];
      if (!states_[i].is_granted) continue;
      // What is only tried may go on waiting: keep_waiting sees to it.
      if (!states_[i].is_try) round_.claim(turn.nodes);
      granted[{turn.rule, turn.options, turn.why}].insert(i);
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
        return is_other(request.spec.nodes.front());
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
    return part;
  }

  Round& round_;
  std::size_t active_;
  std::size_t most_;
  std::size_t asked_ = 0;  ///< in this round
  std::size_t room_ = 0;
  std::size_t held_ = 0;
  bool is_full_ = false;
  std::vector<State> states_{};
  std::unordered_map<NodeName, std::size_t> turn_of_{};
  std::map<std::size_t, PlanOptions> options_of_{};  ///< by nodeset
  std::map<std::size_t, Error> full_nodesets_{};
  std::map<PlanOptions, AskForNodes> plans_{};
};

}  // namespace

void take_turns(Round& round) {
  if (!round.turns.empty()) TurnTaker{round}.run();
}

}  // namespace flex
