// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/support/fake_scheduler.h"

#include <fmt/format.h>
#include <slurm/slurm.h>

#include <algorithm>
#include <utility>

namespace flex::test {
namespace {

std::string name_of(NodeRequest request) {
  switch (request) {
    case NodeRequest::PowerUp:
      return "node POWER_UP";
    case NodeRequest::PowerDown:
      return "node POWER_DOWN";
    case NodeRequest::PowerDownForce:
      return "node POWER_DOWN_FORCE";
    case NodeRequest::PowerDownAsap:
      return "node POWER_DOWN_ASAP";
    case NodeRequest::Down:
      return "node DOWN";
    case NodeRequest::Idle:
      return "node IDLE";
    case NodeRequest::Resume:
      return "node RESUME";
    case NodeRequest::Drain:
      return "node DRAIN";
    case NodeRequest::Undrain:
      return "node UNDRAIN";
  }
  return "node ?";
}

void set_base(Node& node, std::uint32_t base) {
  node.state = static_cast<std::uint32_t>((node.state & NODE_STATE_FLAGS) | base);
}

void set_flag(Node& node, std::uint64_t flag, bool on = true) {
  node.state = static_cast<std::uint32_t>(on ? node.state | flag : node.state & ~flag);
}

/// The node after the next tick of slurmctld's power saving.
void apply(Node& node, NodeRequest request) {
  switch (request) {
    case NodeRequest::PowerUp:
      set_flag(node, NODE_STATE_POWERED_DOWN, false);
      set_flag(node, NODE_STATE_POWERING_UP);
      break;
    case NodeRequest::PowerDownForce:
      set_base(node, NODE_STATE_IDLE);
      set_flag(node, NODE_STATE_POWERING_UP, false);
      set_flag(node, NODE_STATE_POWERING_DOWN);
      set_flag(node, NODE_STATE_DRAIN, false);
      break;
    case NodeRequest::PowerDown:
    case NodeRequest::PowerDownAsap:
      // Happens when the node's jobs have ended.
      set_flag(node, NODE_STATE_POWER_DOWN);
      if (request == NodeRequest::PowerDownAsap) set_flag(node, NODE_STATE_DRAIN);
      break;
    case NodeRequest::Down:
      set_base(node, NODE_STATE_DOWN);
      break;
    case NodeRequest::Idle:
    case NodeRequest::Resume:
      set_base(node, NODE_STATE_IDLE);
      set_flag(node, NODE_STATE_DRAIN, false);
      break;
    case NodeRequest::Drain:
      set_flag(node, NODE_STATE_DRAIN);
      break;
    case NodeRequest::Undrain:
      set_flag(node, NODE_STATE_DRAIN, false);
      node.reason.clear();
      break;
  }
}

bool takes_jobs_away(NodeRequest request) {
  return request == NodeRequest::PowerDownForce || request == NodeRequest::Down;
}

Error no_such_job(JobId job) {
  return {.kind = ErrorKind::NotFound,
          .what = fmt::format("job {}: Invalid job id specified (2017)", job),
          .code = "ESLURM_INVALID_JOB_ID"};
}

Error no_such_node(const NodeName& node) {
  return {.kind = ErrorKind::NotFound,
          .what = fmt::format("node {}: Invalid node name specified (2018)", node),
          .code = "ESLURM_INVALID_NODE_NAME"};
}

Error no_such_reservation(const std::string& name) {
  return {.kind = ErrorKind::NotFound,
          .what = fmt::format("reservation {}: Requested reservation is invalid", name),
          .code = "ESLURM_RESERVATION_INVALID"};
}

Error not_running(JobId job) {
  return {.kind = ErrorKind::Precondition,
          .what = fmt::format("job {}: Job is not running", job),
          .code = "ESLURM_JOB_NOT_RUNNING"};
}

FakeScheduler::Update note(const std::string& what, const Reservation& reservation) {
  return {.what = what,
          .nodes = reservation.nodes,
          .text = reservation.name,
          .start = reservation.start,
          .end = reservation.end};
}

}  // namespace

void FakeScheduler::fail_next(const std::string& method, Error error, int count) {
  failures_[method] = {.error = std::move(error), .count = count};
}

std::optional<Error> FakeScheduler::enter(const std::string& method) {
  calls.push_back(method);
  const auto found = failures_.find(method);
  if (found == failures_.end() || found->second.count == 0) return std::nullopt;
  --found->second.count;
  return found->second.error;
}

Node& FakeScheduler::add_node(std::string_view name, std::optional<std::uint32_t> state) {
  constexpr auto kPoweredDown =
      static_cast<std::uint32_t>(NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN);
  nodes.push_back({.name = {std::string(name)}, .state = state.value_or(kPoweredDown)});
  return nodes.back();
}

Job& FakeScheduler::add_job(JobId id, std::vector<NodeName> on, std::optional<Seconds> time_limit) {
  jobs.push_back({.id = id,
                  .state = static_cast<std::uint32_t>(JOB_RUNNING | JOB_CONFIGURING),
                  .time_limit = time_limit,
                  .nodes = std::move(on),
                  .is_batch = true,
                  .may_requeue = true,
                  .is_configuring = true,
                  .is_running = true});
  return jobs.back();
}

Node* FakeScheduler::find_node(std::string_view name) {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const Node& n) { return n.name.text == name; });
  return found == nodes.end() ? nullptr : &*found;
}

Job* FakeScheduler::find_job(JobId id) {
  const auto found =
      std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.id == id; });
  return found == jobs.end() ? nullptr : &*found;
}

Reservation* FakeScheduler::find_reservation(std::string_view name) {
  const auto found = std::find_if(reservations.begin(),
                                  reservations.end(),
                                  [&](const Reservation& r) { return r.name == name; });
  return found == reservations.end() ? nullptr : &*found;
}

Result<std::string> FakeScheduler::load_cluster_name() {
  if (const auto error = enter("load_cluster_name")) return *error;
  return cluster;
}

Result<std::vector<Node>> FakeScheduler::load_nodes() {
  if (const auto error = enter("load_nodes")) return *error;
  return nodes;
}

Result<std::vector<Job>> FakeScheduler::load_jobs(std::span<const JobId> ids) {
  if (const auto error = enter("load_jobs")) return *error;
  std::vector<Job> found;
  for (const Job& job : jobs) {
    if (std::find(ids.begin(), ids.end(), job.id) != ids.end()) found.push_back(job);
  }
  return found;
}

Result<std::vector<Job>> FakeScheduler::load_all_jobs() {
  if (const auto error = enter("load_all_jobs")) return *error;
  return jobs;
}

Result<std::vector<Partition>> FakeScheduler::load_partitions() {
  if (const auto error = enter("load_partitions")) return *error;
  return partitions;
}

Result<bool> FakeScheduler::refresh_nodes(Listed<Node>& list) {
  if (const auto error = enter("refresh_nodes")) return *error;
  asked_since.push_back(list.as_of);
  list.items = nodes;
  list.as_of = TimePoint{Seconds{1}};
  return true;
}

Result<bool> FakeScheduler::refresh_jobs(Listed<Job>& list) {
  if (const auto error = enter("refresh_jobs")) return *error;
  list.items = jobs;
  return true;
}

Result<bool> FakeScheduler::refresh_partitions(Listed<Partition>& list) {
  if (const auto error = enter("refresh_partitions")) return *error;
  list.items = partitions;
  return true;
}

Result<bool> FakeScheduler::refresh_reservations(Listed<Reservation>& list) {
  if (const auto error = enter("refresh_reservations")) return *error;
  list.items = reservations;
  return true;
}

Result<SlurmSettings> FakeScheduler::load_settings() {
  if (const auto error = enter("load_settings")) return *error;
  return settings;
}

Result<Accounting> FakeScheduler::load_accounting(std::span<const std::string> /*users*/) {
  if (const auto error = enter("load_accounting")) return *error;
  return accounting;
}

Result<Controller> FakeScheduler::find_controller() {
  if (const auto error = enter("find_controller")) return *error;
  return controller;
}

Result<Done> FakeScheduler::update_nodes(std::span<const NodeName> names,
                                         NodeRequest request,
                                         std::string_view reason) {
  if (const auto error = enter("update_nodes")) return *error;
  for (const auto& name : names) {
    if (find_node(name.text) == nullptr) return no_such_node(name);
  }
  updates.push_back({.what = name_of(request),
                     .nodes = {names.begin(), names.end()},
                     .text = std::string(reason)});
  for (const auto& name : names) {
    Node& node = *find_node(name.text);
    apply(node, request);
    if (!reason.empty()) node.reason = reason;
    if (!takes_jobs_away(request)) continue;
    for (Job& job : jobs) {
      if (std::find(job.nodes.begin(), job.nodes.end(), name) != job.nodes.end()) give_back(job);
    }
  }
  return Done{};
}

void FakeScheduler::give_back(Job& job) {
  if (job.is_pending || job.is_finished) return;
  const bool requeued = job.is_batch && job.may_requeue;
  job.is_configuring = false;
  job.is_running = false;
  job.is_pending = requeued;
  job.is_finished = !requeued;
  job.state = requeued ? JOB_PENDING : JOB_NODE_FAIL;
  if (requeued) {
    ++job.restart_count;
    job.nodes.clear();
  }
}

Result<Done> FakeScheduler::update_nodes_and_extra(std::span<const NodeName> names,
                                                   NodeRequest request,
                                                   std::string_view reason,
                                                   std::string_view extra) {
  auto done = update_nodes(names, request, reason);
  if (!done) return done;
  for (const NodeName& name : names) find_node(name.text)->extra = extra;
  return done;
}

Result<Done> FakeScheduler::set_node_extra(std::span<const NodeName> names, std::string_view text) {
  if (const auto error = enter("set_node_extra")) return *error;
  for (const NodeName& name : names) {
    Node* const node = find_node(name.text);
    if (node == nullptr)
      return Error{.kind = ErrorKind::NotFound, .what = fmt::format("no node {}", name.text)};
    node->extra = text;
  }
  updates.push_back(
      {.what = "extra", .nodes = {names.begin(), names.end()}, .text = std::string(text)});
  return Done{};
}

Result<Done> FakeScheduler::set_admin_comment(JobId job, std::string_view text) {
  if (const auto error = enter("set_admin_comment")) return *error;
  Job* const found = find_job(job);
  if (found == nullptr) return no_such_job(job);
  found->admin_comment = text;
  updates.push_back({.what = "admin_comment", .job = job, .text = std::string(text)});
  return Done{};
}

Result<Done> FakeScheduler::requeue(JobId job) {
  if (const auto error = enter("requeue")) return *error;
  return send_back(job, "requeue");
}

Result<Done> FakeScheduler::requeue_and_hold(JobId job) {
  if (const auto error = enter("requeue_and_hold")) return *error;
  return send_back(job, "requeue_hold");
}

Result<Done> FakeScheduler::send_back(JobId job, const std::string& what) {
  Job* const found = find_job(job);
  if (found == nullptr) return no_such_job(job);
  if (!found->is_batch || !found->may_requeue) {
    return Error{.kind = ErrorKind::Precondition,
                 .what = fmt::format("job {}: cannot be requeued", job),
                 .code = found->is_batch ? "ESLURM_DISABLED" : "ESLURM_BATCH_ONLY"};
  }
  if (found->is_pending) {
    return Error{.kind = ErrorKind::Precondition,
                 .what = fmt::format("job {}: Job is pending execution (2024)", job),
                 .code = "ESLURM_JOB_PENDING"};
  }
  give_back(*found);
  updates.push_back({.what = what, .job = job});
  return Done{};
}

Result<Job*> FakeScheduler::find_running(JobId job) {
  Job* const found = find_job(job);
  if (found == nullptr) return no_such_job(job);
  if (!found->is_running) return not_running(job);
  return found;
}

Result<Done> FakeScheduler::cancel_job(JobId job) {
  if (const auto error = enter("cancel_job")) return *error;
  Job* const found = find_job(job);
  if (found == nullptr) return no_such_job(job);
  found->is_configuring = found->is_running = found->is_pending = false;
  found->is_finished = true;
  found->state = JOB_CANCELLED;
  updates.push_back({.what = "cancel", .job = job});
  return Done{};
}

Result<Done> FakeScheduler::signal_job(JobId job, int signal) {
  if (const auto error = enter("signal_job")) return *error;
  auto found = find_running(job);
  if (!found) return found.error();
  if ((*found)->is_configuring) return not_running(job);
  updates.push_back({.what = "signal", .job = job, .signal = signal});
  return Done{};
}

Result<Done> FakeScheduler::notify_job(JobId job, std::string_view text) {
  if (const auto error = enter("notify_job")) return *error;
  if (auto found = find_running(job); !found) return found.error();
  updates.push_back({.what = "notify", .job = job, .text = std::string(text)});
  return Done{};
}

std::optional<Error> FakeScheduler::refuse(const Reservation& reservation) {
  if (reservation.nodes.empty() || reservation.end <= reservation.start) {
    return Error{ErrorKind::Invalid, fmt::format("reservation {}", reservation.name)};
  }
  for (const auto& node : reservation.nodes) {
    if (find_node(node.text) == nullptr) return no_such_node(node);
  }
  return std::nullopt;
}

Result<Done> FakeScheduler::create_reservation(const Reservation& reservation) {
  if (const auto error = enter("create_reservation")) return *error;
  if (const auto error = refuse(reservation)) return *error;
  if (find_reservation(reservation.name) != nullptr) {
    return Error{.kind = ErrorKind::AlreadyExists,
                 .what = fmt::format("reservation {}: Duplicate name", reservation.name),
                 .code = "ESLURM_RESERVATION_NAME_DUP"};
  }
  updates.push_back(note("create_reservation", reservation));
  reservations.push_back(reservation);
  reservations.back().is_maintenance = true;
  reservations.back().ignores_jobs = true;
  return Done{};
}

Result<Done> FakeScheduler::update_reservation(const Reservation& reservation) {
  if (const auto error = enter("update_reservation")) return *error;
  if (const auto error = refuse(reservation)) return *error;
  Reservation* const found = find_reservation(reservation.name);
  if (found == nullptr) return no_such_reservation(reservation.name);
  updates.push_back(note("update_reservation", reservation));
  found->nodes = reservation.nodes;
  found->start = reservation.start;
  found->end = reservation.end;
  return Done{};
}

Result<Done> FakeScheduler::delete_reservation(const std::string& name) {
  if (const auto error = enter("delete_reservation")) return *error;
  if (find_reservation(name) == nullptr) return no_such_reservation(name);
  updates.push_back({.what = "delete_reservation", .text = name});
  std::erase_if(reservations, [&](const Reservation& r) { return r.name == name; });
  return Done{};
}

}  // namespace flex::test
