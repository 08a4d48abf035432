// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"
#include "lib/core/node_lease.h"
#include "lib/core/text.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/lease.h"
#include "sweeper/patience.h"
#include "sweeper/status_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

namespace flex::status {

namespace {

/// A job's name may be anything.
constexpr std::size_t kMostName = 64;

/// How far a node that a job waits for has come, the least first.
enum class Phase { Retry, Turn, Queued, Creating, Booting };

std::string_view to_string(Phase phase) {
  switch (phase) {
    case Phase::Retry:
      return "retry";
    case Phase::Turn:
      return "turn";
    case Phase::Queued:
      return "queued";
    case Phase::Creating:
      return "creating";
    case Phase::Booting:
      break;
  }
  return "booting";
}

/// When a node, and those that are asked for with it, is asked for again.
std::optional<TimePoint> retry_of(const Look& look, const NodeName& node) {
  const auto retry = look.memory.retries.find(node);
  if (retry == look.memory.retries.end() || retry->second.next <= look.shot.now)
    return std::nullopt;
  return retry->second.next;
}

Phase phase_of(const Look& look, const NodePicture& node) {
  if (node.has_vm()) return Phase::Booting;
  if (node.request)
    return node.request->state == RequestState::Provisioning ? Phase::Creating : Phase::Queued;
  // Without a request: one by one, or all at once.
  if (node.is_queued_alone() || node.is_bulk_pending) return Phase::Creating;
  return retry_of(look, node.name) ? Phase::Retry : Phase::Turn;
}

struct JobRow {
  const Job* job = nullptr;
  const NodePicture* first = nullptr;  ///< of its nodes that are ours: one that waits before others
  const ResizeRequest* request = nullptr;  ///< the oldest that it waits for
  std::optional<JobLease> lease{};
  TimePoint since{};
  Phase phase = Phase::Booting;         ///< of the node that has come least far
  std::optional<TimePoint> retry_at{};  ///< of the first that is asked for again
};

/// Nothing for a job that holds no node of ours.
std::optional<JobRow> row_of(const Look& look, const Job& job) {
  JobRow row{.job = &job};
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = look.picture.find(name);
    if (node == nullptr) continue;
    if (row.first == nullptr) row.first = node;
    row.phase = std::min(row.phase, phase_of(look, *node));
    const auto retry = phase_of(look, *node) == Phase::Retry ? retry_of(look, name) : std::nullopt;
    if (retry && (!row.retry_at || *retry < *row.retry_at)) row.retry_at = retry;
    if (node->has_vm() || !node->request) continue;
    if (row.request == nullptr || node->request->created < row.request->created) {
      row.request = node->request.item;
      row.first = node;
    }
  }
  if (row.first == nullptr) return std::nullopt;
  row.lease = lease_of(look.picture, job);
  const bool waits = job.is_configuring && row.request != nullptr;
  row.since = waits ? began_to_wait(*row.request, job) : job.start_time;
  return row;
}

/// The request that it waits for, or that made its VMs.
std::string request_of(const JobRow& row) {
  if (row.request != nullptr) return row.request->name.text;
  if (row.first->node == nullptr) return {};
  const auto said = read_lease(row.first->node->extra);
  return said ? said->request : std::string{};
}

Json to_json(const Look& look, const JobRow& row) {
  const Job& job = *row.job;
  Json json{{"id", job.id},
            {"name", shortened(job.name, kMostName)},
            {"user", job.user.empty() ? fmt::format("{}", job.user_id) : job.user},
            {"state", job.is_configuring ? "waiting" : "running"},
            {"partition", job.partition},
            {"nodeset", look.config.nodesets[row.first->nodeset].name},
            {"nodes", fold_hostlist(job.nodes)},
            {"n", job.nodes.size()},
            {"request", request_of(row)},
            {"since", iso(row.since)},
            {"ends", row.lease ? iso(row.lease->ends) : std::string{}},
            {"note", our_note(job.admin_comment)}};
  if (job.time_limit) json["time_limit_seconds"] = job.time_limit->count();
  if (!job.is_configuring) return json;
  json["phase"] = to_string(row.phase);
  if (row.phase == Phase::Retry) json["retry_at"] = iso(*row.retry_at);
  return json;
}

/// Who waits longest, or whose VMs end first.
bool is_before(const JobRow& left, const JobRow& right) {
  const auto key = [](const JobRow& row) {
    const TimePoint ends = row.lease ? row.lease->ends : TimePoint::max();
    return std::tuple{row.job->is_configuring ? row.since : ends, row.job->id};
  };
  return key(left) < key(right);
}

CutList jobs(const Look& look, bool are_waiting) {
  std::vector<JobRow> rows;
  for (const Job& job : look.shot.jobs.items) {
    if (!job.holds_nodes() || job.is_configuring != are_waiting) continue;
    if (const auto row = row_of(look, job)) rows.push_back(*row);
  }
  std::sort(rows.begin(), rows.end(), is_before);
  CutList list;
  if (rows.size() > kMostRows) {
    list.omitted = rows.size() - kMostRows;
    rows.resize(kMostRows);
  }
  for (const JobRow& row : rows) list.items.push_back(to_json(look, row));
  return list;
}

}  // namespace

CutList waiting_jobs(const Look& look) {
  return jobs(look, true);
}

CutList running_jobs(const Look& look) {
  return jobs(look, false);
}

Json retries(const Look& look) {
  using Key = std::tuple<TimePoint, std::string, std::uint32_t, std::uint32_t>;
  std::map<Key, std::vector<NodeName>> alike;
  for (const auto* known : {&look.memory.retries, &look.memory.raised}) {
    for (const auto& [node, retry] : *known)
      alike[{retry.next, retry.why, retry.attempts, retry.refusals}].push_back(node);
  }
  Json list = Json::array();
  for (const auto& [key, nodes] : alike) {
    if (list.size() == kMostRows) break;
    const auto& [next, why, attempts, refusals] = key;
    list.push_back({{"nodes", fold_hostlist(nodes)},
                    {"n", nodes.size()},
                    {"attempts", attempts},
                    {"refusals", refusals},
                    {"next", iso(next)},
                    {"why", why}});
  }
  return list;
}

}  // namespace flex::status
