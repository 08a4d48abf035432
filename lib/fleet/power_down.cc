// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/power_down.h"

#include "lib/core/job_note.h"
#include "lib/fleet/drain.h"
#include "lib/fleet/node_extra.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/node_state.h"

#include <algorithm>
#include <map>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// Reason and extra of a call.
using Texts = std::pair<std::string, std::string>;
using Calls = std::map<Texts, std::vector<NodeName>>;

std::unordered_map<NodeName, const Node*> by_name(const std::vector<Node>& nodes) {
  std::unordered_map<NodeName, const Node*> found;
  for (const Node& node : nodes) found.emplace(node.name, &node);
  return found;
}

Result<Done> send(Scheduler& scheduler, NodeRequest request, const TakeDownPlan::Call& call) {
  if (call.extra.empty()) return scheduler.update_nodes(call.nodes, request, call.reason);
  return scheduler.update_nodes_and_extra(call.nodes, request, call.reason, call.extra);
}

/// DOWN for a reason that only the note has: a power-up has taken it (lib/fleet/drain.cc).
bool is_down_by_note(const Node& node) {
  return is_down(node) && node.reason.empty() && drain_note(node.extra);
}

/// What the call says of a node that is drained for good. Its reason stays, except where the node
/// goes DOWN: there the reason tells later rounds that it was us.
Texts texts_for(const Node& node, const TakeDown& wish) {
  // An admin's reason that slurmctld has overwritten is still in the note.
  const bool is_lost = is_down_by_note(node);
  const bool is_noted = is_lost || (is_slurmctlds_reason(node.reason) && drain_note(node.extra));
  const std::string kept = is_lost ? *drain_note(node.extra) : std::string{};
  return {wish.request == NodeRequest::Down ? wish.reason : kept,
          is_noted ? node.extra : with_drain_note(node.extra, node.reason)};
}

/// The nodes of `before` that no job had and that a job has now.
std::unordered_set<NodeName> newly_allocated(const std::vector<Node>& before,
                                             const std::vector<Node>& now) {
  const auto known = by_name(before);
  std::unordered_set<NodeName> taken;
  for (const Node& node : now) {
    const auto found = known.find(node.name);
    if (found != known.end() && !is_allocated(*found->second) && is_allocated(node))
      taken.insert(node.name);
  }
  return taken;
}

void carry_out(Scheduler& scheduler,
               NodeRequest request,
               const TakeDownPlan& plan,
               TakenDown& taken) {
  for (const TakeDownPlan::Call& call : plan.calls) {
    const auto sent = send(scheduler, request, call);
    if (sent)
      taken.done.insert(taken.done.end(), call.nodes.begin(), call.nodes.end());
    else if (taken.result)
      taken.result = sent;
  }
  taken.waking = plan.waking;
}

}  // namespace

bool takes_down(NodeRequest request) {
  return request == NodeRequest::PowerDown || request == NodeRequest::PowerDownForce ||
         request == NodeRequest::PowerDownAsap || request == NodeRequest::Down;
}

TakeDownPlan plan_take_down(const Config& config,
                            const std::vector<Node>& now,
                            const TakeDown& wish) {
  const auto known = by_name(now);
  TakeDownPlan plan;
  Calls calls;
  for (const NodeName& name : wish.nodes) {
    const auto found = known.find(name);
    const Node* const node = found == known.end() ? nullptr : found->second;
    const Config::Place* const place = config.find(name);
    if (node != nullptr && wish.only_free && is_allocated(*node)) continue;
    // DOWN does not power a node down, and must not wait: the node's job is lost already.
    if (node != nullptr && is_about_to_wake(*node) && wish.request != NodeRequest::Down)
      plan.waking.push_back(name);
    else if (node != nullptr && place != nullptr &&
             (is_set_aside(config.nodesets[place->nodeset], *node) || is_down_by_note(*node)))
      calls[texts_for(*node, wish)].push_back(name);
    else
      calls[{wish.reason, {}}].push_back(name);
  }
  for (auto& [texts, nodes] : calls)
    plan.calls.push_back({.nodes = std::move(nodes), .reason = texts.first, .extra = texts.second});
  return plan;
}

TakenDown take_down(Scheduler& scheduler, const Config& config, const TakeDown& wish) {
  TakenDown taken;
  if (wish.nodes.empty()) return taken;
  const auto now = scheduler.load_nodes();
  if (!now)
    taken.result = now.error();
  else
    carry_out(scheduler, wish.request, plan_take_down(config, *now, wish), taken);
  return taken;
}

TakenDown take_down_patiently(Scheduler& scheduler,
                              const Config& config,
                              const TakeDown& wish,
                              std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{250};
  TakenDown taken;
  if (wish.nodes.empty()) return taken;
  const auto first = scheduler.load_nodes();
  if (!first) {
    taken.result = first.error();
    return taken;
  }
  carry_out(scheduler, wish.request, plan_take_down(config, *first, wish), taken);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!taken.waking.empty() && taken.result && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    const auto now = scheduler.load_nodes();
    if (!now) {
      taken.result = now.error();
      return taken;
    }
    TakeDown rest{
        .request = wish.request, .nodes = {}, .reason = wish.reason, .only_free = wish.only_free};
    const auto others = newly_allocated(*first, *now);
    for (NodeName& name : taken.waking) {
      if (!others.contains(name)) rest.nodes.push_back(std::move(name));
    }
    carry_out(scheduler, rest.request, plan_take_down(config, *now, rest), taken);
  }
  return taken;
}

Result<Done> drain_nodes(Scheduler& scheduler,
                         const std::vector<NodeName>& nodes,
                         const std::string& reason) {
  // What a rule of ours drains for, and undrains again, is no drain to remember.
  if (reason.starts_with(kNotePrefix) && !reason.starts_with(kGaveUp))
    return scheduler.update_nodes(nodes, NodeRequest::Drain, reason);
  const auto now = scheduler.load_nodes();
  if (!now) return now.error();
  const auto known = by_name(*now);
  std::map<std::string, std::vector<NodeName>> by_extra;
  for (const NodeName& name : nodes) {
    const auto found = known.find(name);
    by_extra[with_drain_note(found == known.end() ? "" : found->second->extra, reason)].push_back(
        name);
  }
  Result<Done> result = Done{};
  for (const auto& [extra, names] : by_extra) {
    const auto sent = scheduler.update_nodes_and_extra(names, NodeRequest::Drain, reason, extra);
    if (result && !sent) result = sent;
  }
  return result;
}

Result<Done> undrain_nodes(Scheduler& scheduler, const std::vector<NodeName>& nodes) {
  const auto now = scheduler.load_nodes();
  if (!now) return now.error();
  const auto known = by_name(*now);
  std::vector<NodeName> off;
  std::vector<NodeName> others;
  for (const NodeName& name : nodes) {
    const auto found = known.find(name);
    (found != known.end() && is_off(*found->second) ? off : others).push_back(name);
  }
  Result<Done> result = Done{};
  if (!off.empty()) result = scheduler.update_nodes(off, undrain_of_off(), {});
  if (result && !others.empty()) result = scheduler.update_nodes(others, NodeRequest::Undrain, {});
  return result;
}

}  // namespace flex
