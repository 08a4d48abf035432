// SPDX-License-Identifier: GPL-2.0-or-later
// on_stockout: nodes have waited for `wait` without a VM, or their zone can never serve them: what
// the next entry says is tried. What was tried before keeps its place until the new request is in
// the queue, or VMs are there (surplus_request).
#include "lib/core/duration.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/gce/errors.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

namespace flex {

namespace {

/// Nodes that one job waits for in one nodeset, or one static node.
struct Waiting {
  std::vector<NodeName> nodes{};
  bool is_free = true;
};

std::map<std::string, Waiting> find_waiting(const Round& round) {
  std::map<std::string, Waiting> waiting;
  for (const NodePicture& node : round.picture.nodes()) {
    if (round.nodeset_of(node).on_stockout.empty() || round.is_stopped(node)) continue;
    if (!node.is_coming_up() || node.has_vm() || !node.is_awaited()) continue;
    Waiting& found = waiting[waiter_of(round, node)];
    found.nodes.push_back(node.name);
    found.is_free = found.is_free && round.is_free(node.name) && !round.is_queued(node.name);
  }
  return waiting;
}

/// The furthest that has been asked for, and when that was; nothing if no request is out.
const ResizeRequest* latest_request(const NodePicture& node) {
  const ResizeRequest* latest = nullptr;
  for (const Placed<ResizeRequest>& request : node.requests) {
    if (!is_our_request(*request)) continue;
    if (latest == nullptr || request_way(*latest).step < request_way(*request).step)
      latest = request.item;
  }
  return latest;
}

/// When what the step says was asked for, as far as anything shows that it was: a request of it
/// that waits or has failed, an entry that waits, VMs that were refused at once.
std::optional<TimePoint> asked_at(const Round& round, const NodePicture& first, std::size_t step) {
  const ResizeRequest* const request = latest_request(first);
  if (request != nullptr && request_way(*request).step >= step)
    return request->created == TimePoint{} ? round.shot.now : request->created;
  if (first.failed && request_way(*first.failed).step >= step) return first.failed->created;
  const auto is_of_step = [&](const Placed<Instance>& entry) {
    return entry.group->group.step >= step;
  };
  const Mode mode = routes_of(round.nodeset_of(first), step).front().mode;
  if (std::any_of(first.alone.begin(), first.alone.end(), is_of_step) ||
      (mode == Mode::BulkInsert && first.is_bulk_pending))
    return round.shot.now;
  const auto retry = round.memory.retries.find(first.name);
  if (retry == round.memory.retries.end()) return std::nullopt;
  const bool is_tried =
      retry->second.attempts > 0 || (mode != Mode::Queued && retry->second.refusals > 0);
  return is_tried ? std::optional{round.shot.now} : std::nullopt;
}

/// Where these nodes stand. A request says it itself; VMs that are asked for without one are
/// remembered. While nothing is asked for no time counts.
StockoutState& state_of(Round& round, const NodePicture& first) {
  StockoutState& state = round.memory.stockouts[waiter_of(round, first)];
  const ResizeRequest* const request = latest_request(first);
  if (request != nullptr && request_way(*request).step > state.step)
    state = {.step = request_way(*request).step};
  auto asked = asked_at(round, first, state.step);
  // Nothing is asked for in a way that is shut; the next one still comes after its wait.
  if (!asked && state.is_shut) asked = state.since;
  if (state.is_asked) {
    // Between two requests there may be none for a moment.
    const bool is_idle =
        !asked && round.see(Rule::Stockout, waiter_of(round, first) + " idle").is_twice();
    if (!is_idle) return state;
  }
  state.is_asked = asked.has_value();
  state.since = asked.value_or(round.shot.now);
  return state;
}

/// What the step asks for is not out: it has just become due, or was refused.
bool is_missing(Round& round, const NodePicture& first, std::size_t step) {
  const ResizeRequest* const request = latest_request(first);
  if (request != nullptr && request_way(*request).step >= step) return false;
  // Its next attempt is failed_request's.
  if (first.failed && request_way(*first.failed).step >= step) return false;
  const Mode mode = routes_of(round.nodeset_of(first), step).front().mode;
  const auto is_of_step = [&](const Placed<Instance>& entry) {
    return entry.group->group.step >= step;
  };
  if (mode == Mode::Individual && std::any_of(first.alone.begin(), first.alone.end(), is_of_step))
    return false;
  return mode != Mode::BulkInsert || !may_still_come(round, first);
}

/// The zones of this step can never serve it, as Google has said of what was asked for there, and
/// nothing of the step waits.
bool is_hopeless(const NodePicture& first, std::size_t step) {
  const ResizeRequest* const request = latest_request(first);
  if (request != nullptr && request_way(*request).step >= step) return false;
  for (const Placed<Instance>& entry : first.alone) {
    if (entry.group->group.step < step) continue;
    return entry->last_error && is_of_zone(to_error(*entry->last_error));
  }
  return first.failed && request_way(*first.failed).step == step && first.failed->error &&
         is_of_zone(to_error(*first.failed->error));
}

std::string why_next(const StockoutState& state, const NodesetConfig& nodeset) {
  if (state.is_hopeless)
    return fmt::format("the zones before can never serve it: on_stockout, entry {}", state.step);
  return fmt::format("no VMs within {}: on_stockout, entry {}",
                     format_slurm_time(nodeset.on_stockout[state.step - 1].wait),
                     state.step);
}

void look_at(Round& round, const Waiting& waiting) {
  const NodePicture& first = *round.picture.find(waiting.nodes.front());
  const NodesetConfig& nodeset = round.nodeset_of(first);
  StockoutState& state = state_of(round, first);
  state.round = round.memory.round;
  state.step = std::min(state.step, nodeset.on_stockout.size());
  const bool is_any_left = state.step < nodeset.on_stockout.size();
  const bool is_skipped = is_any_left && is_hopeless(first, state.step);
  const bool is_over = is_any_left && state.is_asked &&
                       round.shot.now - state.since >= nodeset.on_stockout[state.step].wait;
  if (is_skipped || is_over) {
    ++state.step;
    state.since = round.shot.now;
    state.is_asked = false;
    state.is_shut = false;
    state.is_hopeless = is_skipped;
    round.memory.retries.erase(first.name);
  }
  if (state.step == 0 || !waiting.is_free || !is_due(round, first) ||
      !is_missing(round, first, state.step))
    return;
  Turn turn =
      make_turn(round, Rule::Stockout, why_next(state, nodeset), waiting.nodes, state.since);
  turn.options = {.step = state.step, .is_second = true};
  turn.is_extra = first.is_asked_for();
  state.is_shut = is_shut_out(round, turn);
  if (!state.is_shut) round.enqueue(std::move(turn));
}

}  // namespace

void stockout(Round& round) {
  for (const auto& [waiter, waiting] : find_waiting(round)) look_at(round, waiting);
  std::erase_if(round.memory.stockouts,
                [&](const auto& entry) { return entry.second.round != round.memory.round; });
}

}  // namespace flex
