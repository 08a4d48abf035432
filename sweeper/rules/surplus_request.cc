// SPDX-License-Identifier: GPL-2.0-or-later
// surplus_request: several requests may be out for the same nodes: in a race, while one is renewed,
// or after on_stockout has tried something else. When one has been served, or the newer one is in
// the queue, the others are cancelled. A VM that came too late is deleted: its name is taken.
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex {

namespace {

/// All of its nodes have a VM, or wait for one, in another group.
template <class Has>
bool are_elsewhere(const Round& round, const ResizeRequest& request, const Has& has) {
  return !request.nodes.empty() &&
         std::all_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& name) {
           const NodePicture* node = round.picture.find(name);
           return node != nullptr && has(*node);
         });
}

bool names_all(const ResizeRequest& request, const std::vector<NodeName>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeName& node) {
    return std::find(request.nodes.begin(), request.nodes.end(), node) != request.nodes.end();
  });
}

/// The one that takes its place and is in the queue; null: none.
const ResizeRequest* find_successor(const Round& round, const ResizeRequest& request) {
  const NodePicture* node = round.picture.find(request.nodes.front());
  if (node == nullptr) return nullptr;
  const RequestWay way = request_way(request);
  for (const Placed<ResizeRequest>& other : node->requests) {
    if (other->state == RequestState::Accepted && is_our_request(*other) &&
        request_way(*other).follows(way) && names_all(*other, request.nodes))
      return other.item;
  }
  return nullptr;
}

/// Empty: it is needed.
std::string why_surplus(const Round& round, const SweptGroup& group, const ResizeRequest& request) {
  const auto has_vm = [&](const NodePicture& node) {
    return node.has_vm() && node.entry.group != &group;
  };
  if (are_elsewhere(round, request, has_vm)) return "its nodes have their VMs from elsewhere";
  const auto has_or_waits = [&](const NodePicture& node) {
    return has_vm(node) || node.is_queued_alone();
  };
  if (are_elsewhere(round, request, has_or_waits)) return "its nodes are waited for one by one now";
  if (const ResizeRequest* next = find_successor(round, request))
    return fmt::format("request {} of group {} takes its place", next->name, next->group);
  return {};
}

/// The node's own VM is the older one.
void delete_spares(Round& round) {
  std::map<const SweptGroup*, std::vector<Instance>> doomed;
  for (const NodePicture& node : round.picture.nodes()) {
    for (const Placed<Instance>& spare : node.spares) doomed[spare.group].push_back(*spare);
  }
  for (const auto& [group, instances] : doomed)
    delete_instances(round,
                     Rule::SurplusRequest,
                     "a second VM of this name: the first is the node's",
                     group->group.name,
                     instances,
                     false);
}

}  // namespace

void surplus_request(Round& round) {
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      // Only a queued one can be cancelled; one that is being created or served is looked at again.
      if (request.state != RequestState::Accepted || !is_our_request(request) ||
          request.nodes.empty() || !round.is_free(group, request))
        continue;
      const std::string why = why_surplus(round, group, request);
      if (why.empty() || round.spend(1) == 0) continue;
      cancel_request(round, Rule::SurplusRequest, why, {.item = &request, .group = &group});
    }
  }
  delete_spares(round);
}

}  // namespace flex
