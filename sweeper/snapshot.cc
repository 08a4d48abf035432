// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/snapshot.h"

#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/slurm/node_state.h"

#include <algorithm>
#include <string_view>

namespace flex {

namespace {

constexpr int kLive = 2;

/// How much of a VM there is behind an entry.
int rank(const Instance& instance) {
  if (instance.is_dead()) return 0;
  return instance.is_leaving() || instance.is_queued() ? 1 : kLive;
}

/// Which of two entries of one name is the node's: more of a VM, then the older VM, which ends
/// first. Of two that came at the same time, the same group's for all nodes: a job's VMs are in one
/// zone.
bool is_before(const Placed<Instance>& left, const Placed<Instance>& right) {
  constexpr Seconds kSameTime{120};
  if (rank(*left) != rank(*right)) return rank(*left) > rank(*right);
  if (!left->terminates || !right->terminates) return false;
  const Seconds later = *left->terminates - *right->terminates;
  if (later <= -kSameTime || later >= kSameTime) return later < Seconds{0};
  return left.group->group.name < right.group->group.name;
}

void set_entry(NodePicture& node, const Placed<Instance>& entry) {
  node.entry = entry;
  node.is_entry_live = rank(*entry) == kLive;
}

/// Of a failed request: whether who it was for still waits for the node. What has failed for a job
/// that is gone is no failure of the next one's.
bool is_waited_for(const NodePicture& node, const ResizeRequest& request) {
  const JobId job = request_job(request);
  return job == 0 || node.jobs.empty() ||
         std::any_of(
             node.jobs.begin(), node.jobs.end(), [&](const Job* on) { return on->id == job; });
}

}  // namespace

bool NodePicture::is_coming_up() const {
  if (node == nullptr || is_powering_down(*node)) return false;
  // On a node that is up the POWER_UP flag is what a restart of slurmctld may leave.
  return is_powering_up(*node) || (is_power_up_requested(*node) && is_powered_down(*node));
}

bool NodePicture::wants_vm() const {
  return node != nullptr && (is_up(*node) || is_coming_up());
}

bool NodePicture::is_awaited() const {
  if (node == nullptr) return false;
  return !jobs.empty() || (is_static && !is_draining(*node) && !is_power_down_requested(*node));
}

Picture::Picture(const Config& config, const Snapshot& shot) : config_(config), shot_(shot) {
  for (std::size_t set = 0; set < config.nodesets.size(); ++set) {
    first_of_nodeset_.push_back(nodes_.size());
    nodes_.reserve(config.places.size());
    const bool is_bulk_pending = shot.is_bulk_under_way && may_use_bulk(config.nodesets[set]);
    for (const NodeName& name : config.nodesets[set].nodes) {
      NodePicture picture;
      picture.is_bulk_pending = is_bulk_pending;
      picture.name = name;
      picture.nodeset = set;
      picture.is_static = config.find(name)->is_static;
      nodes_.push_back(std::move(picture));
    }
  }
  add_slurm();
  add_timeouts();
  add_cloud();
}

const NodePicture* Picture::find(const NodeName& name) const {
  const Config::Place* place = config_.find(name);
  return place == nullptr ? nullptr : &nodes_[first_of_nodeset_[place->nodeset] + place->index];
}

NodePicture* Picture::at(const NodeName& name) {
  const Config::Place* place = config_.find(name);
  return place == nullptr ? nullptr : &nodes_[first_of_nodeset_[place->nodeset] + place->index];
}

bool Picture::is_in_use_elsewhere(const NodeName& name) const {
  return in_use_elsewhere_.contains(name);
}

const Job* Picture::find_job(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

void Picture::add_slurm() {
  for (const Node& node : shot_.nodes.items) {
    if (NodePicture* const picture = at(node.name))
      picture->node = &node;
    else if (is_up(node) || is_powering_up(node) || is_power_up_requested(node))
      in_use_elsewhere_.insert(node.name);
  }
  for (const Job& job : shot_.jobs.items) {
    jobs_[job.id] = &job;
    if (!job.holds_nodes()) continue;
    for (const NodeName& name : job.nodes) {
      if (NodePicture* const picture = at(name)) picture->jobs.push_back(&job);
    }
  }
}

/// A node's ResumeTimeout is the longest of its partitions' own ones, or the global one.
void Picture::add_timeouts() {
  constexpr Seconds kNever = Seconds::max();
  std::vector<Seconds> longest(nodes_.size(), Seconds{0});
  for (const Partition& partition : shot_.partitions.items) {
    const Seconds own = partition.resume_timeout_is_infinite ? kNever : partition.resume_timeout;
    if (own == Seconds{0}) continue;
    for (const NodeName& name : partition.nodes) {
      const Config::Place* place = config_.find(name);
      if (place == nullptr) continue;
      Seconds& timeout = longest[first_of_nodeset_[place->nodeset] + place->index];
      timeout = std::max(timeout, own);
    }
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (longest[i] == kNever) continue;
    if (longest[i] != Seconds{0}) {
      nodes_[i].resume_timeout = longest[i];
    } else if (!shot_.settings.resume_timeout_is_infinite) {
      nodes_[i].resume_timeout = shot_.settings.resume_timeout;
    }
  }
}

void Picture::add_cloud() {
  for (const SweptGroup& group : shot_.groups) {
    for (const Instance& instance : group.instances)
      add_entry({.item = &instance, .group = &group});
    for (const ResizeRequest& request : group.requests)
      add_request({.item = &request, .group = &group});
    add_unnamed(group);
  }
}

/// Where Google does not list a request's nodes and its description had no room for them, what is
/// queued in its group and named by no other is its.
void Picture::add_unnamed(const SweptGroup& group) {
  const auto unnamed =
      std::find_if(group.requests.begin(), group.requests.end(), [](const ResizeRequest& request) {
        return request.is_active() && request.nodes.empty();
      });
  if (unnamed == group.requests.end()) return;
  for (const Instance& instance : group.instances) {
    NodePicture* const picture = at(instance.name);
    if (picture != nullptr && instance.is_queued() && !picture->request)
      picture->request = {.item = &*unnamed, .group = &group};
  }
}

void Picture::add_entry(const Placed<Instance>& entry) {
  NodePicture* const picture = at(entry->name);
  if (picture == nullptr) return;
  if (entry->is_queued() && entry.group->group.kind != GroupKind::Queued)
    picture->alone.push_back(entry);
  // An entry without a VM in one group must not hide a VM in another.
  if (!picture->entry) return set_entry(*picture, entry);
  const Placed<Instance> other = is_before(entry, picture->entry) ? picture->entry : entry;
  if (other.item != entry.item) set_entry(*picture, entry);
  if (rank(*other) == kLive) picture->spares.push_back(other);
}

void Picture::add_request(const Placed<ResizeRequest>& request) {
  const bool is_failed = request->state == RequestState::Failed && is_our_request(*request);
  if (!request->is_active() && !is_failed) return;
  for (const NodeName& name : request->nodes) {
    NodePicture* const picture = at(name);
    if (picture == nullptr) continue;
    if (request->is_active()) {
      picture->requests.push_back(request);
      if (!picture->request || request->created < picture->request->created)
        picture->request = request;
    } else if (!is_waited_for(*picture, *request)) {
      continue;
    } else if (!picture->failed || picture->failed->created <= request->created) {
      picture->failed = request;
    }
  }
}

FleetView Picture::fleet_of(const std::vector<std::size_t>& nodesets) const {
  return flex::fleet_of(config_, shot_, nodesets);
}

FleetView fleet_of(const Config& config,
                   const Snapshot& shot,
                   const std::vector<std::size_t>& nodesets) {
  FleetView fleet;
  std::unordered_map<std::string_view, NodesetView*> views;
  for (const std::size_t set : nodesets) views.emplace(config.nodesets[set].name, &fleet[set]);
  for (const SweptGroup& group : shot.groups) {
    const auto view = views.find(group.nodeset);
    if (view == views.end()) continue;
    view->second->groups[group.group.name] = {
        .group = group.group, .requests = group.requests, .instances = group.instances};
  }
  for (auto& [set, view] : fleet) {
    for (const Group& group : shot.foreign_groups) view.groups[group.name].group = group;
  }
  return fleet;
}

}  // namespace flex
