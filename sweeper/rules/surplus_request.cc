// SPDX-License-Identifier: GPL-2.0-or-later
// surplus_request: several requests may be out for the same nodes: in a race, while one is renewed,
// or after on_stockout has tried something else, or because two jobs on a shared node have asked at
// the same time. When one has been served, or the newer one is in
// the queue, the others are cancelled. A VM that came too late is deleted: its name is taken.
#include "lib/fleet/groups.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

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

/// Which of two requests for the same node stays: one that is being served; else the older one.
bool has_precedence(const ResizeRequest& other, const ResizeRequest& request) {
  if (other.state == RequestState::Provisioning) return true;
  const auto age = [](const ResizeRequest& one) {
    return std::tie(one.created, one.group.text, one.name.text);
  };
  return age(other) < age(request);
}

/// Two jobs share a node, and the flex-resume of each has asked for it before it could see the
/// other's request: the one of another job that brings the node, too; null: none. What is left of
/// the job's nodes is then asked for without this one.
const ResizeRequest* find_double(const Round& round, const ResizeRequest& request) {
  const JobId job = request_job(request);
  if (job == 0) return nullptr;
  for (const NodeName& name : request.nodes) {
    const NodePicture* const node = round.picture.find(name);
    if (node == nullptr || node->requests.size() < 2) continue;
    for (const Placed<ResizeRequest>& other : node->requests) {
      const JobId owner = request_job(*other);
      const bool is_alive = std::any_of(
          node->jobs.begin(), node->jobs.end(), [&](const Job* on) { return on->id == owner; });
      if (owner != job && is_alive && is_our_request(*other) &&
          round.is_free(*other.group, *other) && has_precedence(*other, request))
        return other.item;
    }
  }
  return nullptr;
}

/// Empty: it is needed.
std::string why_surplus(const Round& round, const SweptGroup& group, const ResizeRequest& request) {
  const auto has_vm = [&](const NodePicture& node) {
    return node.has_vm() && node.entry.group != &group;
  };
  if (are_elsewhere(round, request, has_vm)) return "its nodes have their VMs from elsewhere";
  const std::size_t step = request_way(request).step;
  const auto has_or_waits = [&](const NodePicture& node) {
    return has_vm(node) ||
           std::any_of(node.alone.begin(), node.alone.end(), [&](const Placed<Instance>& entry) {
             return entry.group->group.step > step;
           });
  };
  if (are_elsewhere(round, request, has_or_waits)) return "its nodes are waited for one by one now";
  if (const ResizeRequest* next = find_successor(round, request))
    return fmt::format("request {} of group {} takes its place", next->name, next->group);
  if (const ResizeRequest* other = find_double(round, request))
    return fmt::format(
        "request {} of group {} brings a node of it, too", other->name, other->group);
  return {};
}

/// The node's own VM is the older one, unless a job has run on the other.
void delete_spares(Round& round) {
  std::map<const SweptGroup*, std::vector<Instance>> doomed;
  for (const NodePicture& node : round.picture.nodes()) {
    const auto worked = round.memory.worked.find(node.name);
    for (const Placed<Instance>& spare : node.spares) {
      const bool is_in_use =
          worked != round.memory.worked.end() && worked->second == spare->id && !spare->id.empty();
      const Placed<Instance>& other = is_in_use ? node.entry : spare;
      doomed[other.group].push_back(*other);
    }
  }
  for (const auto& [group, instances] : doomed)
    delete_instances(round,
                     Rule::SurplusRequest,
                     "a second VM of this name: the first is the node's",
                     group->group.name,
                     instances,
                     false);
}

/// What waits one by one, of a step before the one that waits or has been served now.
bool is_outlived(const NodePicture& node, const Placed<Instance>& entry) {
  const std::size_t step = entry.group->group.step;
  if (node.has_vm() && node.entry.group != entry.group) return true;
  // VMs without a group do not say of which step they are.
  if (entry.group->group.kind == GroupKind::Loose) return false;
  const auto is_later = [&](const Placed<Instance>& other) {
    return other.group->group.step > step;
  };
  const auto is_queued_later = [&](const Placed<ResizeRequest>& request) {
    return request->state == RequestState::Accepted && request_way(*request).step > step;
  };
  return std::any_of(node.alone.begin(), node.alone.end(), is_later) ||
         std::any_of(node.requests.begin(), node.requests.end(), is_queued_later);
}

void delete_outlived(Round& round) {
  std::map<const SweptGroup*, std::vector<Instance>> doomed;
  for (const NodePicture& node : round.picture.nodes()) {
    for (const Placed<Instance>& entry : node.alone) {
      if (is_outlived(node, entry)) doomed[entry.group].push_back(*entry);
    }
  }
  for (const auto& [group, instances] : doomed)
    delete_instances(round,
                     Rule::SurplusRequest,
                     "its node is waited for elsewhere, or has its VM",
                     group->group.name,
                     instances,
                     false);
}

}  // namespace

void surplus_request(Round& round) {
  for (const Placed<ResizeRequest>& request : queued_requests(round)) {
    const std::string why = why_surplus(round, *request.group, *request);
    if (why.empty() || round.spend(1) == 0) continue;
    cancel_request(round, Rule::SurplusRequest, why, request);
  }
  delete_spares(round);
  delete_outlived(round);
}

}  // namespace flex
