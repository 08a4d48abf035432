// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/cancel_plan.h"

#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace flex {

namespace {

/// As users write it where a name alone is not enough.
std::string full_name(const ResizeRequest& request) {
  return request.group.text + "/" + request.name.text;
}

std::vector<Placed<ResizeRequest>> find_requests(const Snapshot& shot, const std::string& name) {
  std::vector<Placed<ResizeRequest>> found;
  for (const SweptGroup& group : shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.name.text == name || full_name(request) == name)
        found.push_back({.item = &request, .group = &group});
    }
  }
  return found;
}

Error unknown(const Snapshot& shot, const std::string& name) {
  std::vector<std::string> waiting;
  for (const SweptGroup& group : shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state == RequestState::Accepted && is_our_request(request))
        waiting.push_back(request.name.text);
    }
  }
  constexpr std::size_t kMost = 10;
  const std::size_t more = waiting.size() - std::min(waiting.size(), kMost);
  waiting.resize(waiting.size() - more);
  std::string known =
      waiting.empty() ? "none waits now" : fmt::format("{}", fmt::join(waiting, ", "));
  if (more > 0) known += fmt::format(", and {} more", more);
  return {ErrorKind::NotFound,
          fmt::format("cluster {} has no request '{}'; waiting: {}", shot.cluster, name, known)};
}

/// Nothing if it can be cancelled, else why not and what to do instead.
std::string why_not(const ResizeRequest& request) {
  const std::string nodes = fold_hostlist(request.nodes);
  switch (request.state) {
    case RequestState::Accepted:
      return {};
    case RequestState::Succeeded:
      return fmt::format(
          "it has been served, its VMs are there: end the job, or "
          "scontrol update NodeName={} State=POWER_DOWN",
          nodes);
    case RequestState::Provisioning:
      return "it is just being served, which cannot be undone: wait for its VMs, then end the job";
    case RequestState::Creating:
      return "it is just being made: try again in a few seconds";
    case RequestState::Failed:
      return "it has failed already; flexctl status shows why and what follows";
    case RequestState::Cancelled:
    case RequestState::Deleting:
      return "it is cancelled already";
    case RequestState::Unknown:
      break;
  }
  return "it is in a state that this release does not know";
}

Result<Placed<ResizeRequest>> choose(const Snapshot& shot, const std::string& name) {
  const auto found = find_requests(shot, name);
  if (found.empty()) return unknown(shot, name);
  if (found.size() > 1) {
    std::vector<std::string> keys;
    keys.reserve(found.size());
    for (const auto& request : found) keys.push_back(full_name(*request));
    return Error{
        ErrorKind::Invalid,
        fmt::format("there are several of that name, say which: {}", fmt::join(keys, ", "))};
  }
  const Placed<ResizeRequest>& request = found.front();
  if (!is_our_request(*request))
    return Error{ErrorKind::Invalid,
                 fmt::format("request {} is not ours (its description does not begin with "
                             "slurm-flex-start): whoever made it must cancel it",
                             name)};
  if (const std::string why = why_not(*request); !why.empty())
    return Error{ErrorKind::Precondition, fmt::format("request {}: {}", name, why)};
  return request;
}

class Planner {
 public:
  Planner(const Config& config, const Snapshot& shot, const CancelWish& wish)
      : config_(config), picture_(config, shot), cancelled_(shot.cancelled), wish_(wish) {}

  CancelPlan plan(const Placed<ResizeRequest>& request) {
    why_ = fmt::format("request {} was cancelled by {}", request->name, wish_.by);
    plan_.cancel = action(CancelRequest{.group = request.group->group.name,
                                        .request = request->name,
                                        .nodes = request->nodes,
                                        .job = request_job(*request)});
    plan_.sentences.push_back(fmt::format("cancel request {} for {} ({} nodes)",
                                          request->name,
                                          fold_hostlist(request->nodes),
                                          request->nodes.size()));
    if (has_others(*request)) {
      plan_.sentences.emplace_back(
          "other requests for these nodes go on, and their job waits for them "
          "(race, on_stockout, resubmit_after)");
      keep_away(*request);
      return std::move(plan_);
    }
    const std::vector<const Job*> jobs = jobs_on(picture_, request->nodes);
    std::set<NodeName> going;
    for (const NodeName& name : request->nodes) note_node(name, going);
    for (const Job* job : jobs) {
      for (NodeName& name : coming_for(picture_, *job, jobs)) going.insert(std::move(name));
      give_back(*job);
    }
    power_down({going.begin(), going.end()});
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Action action(ActionKind what) const {
    return {.rule = Rule::ByHand, .why = why_, .what = std::move(what)};
  }

  /// Cancelled a moment ago it may still be listed as active.
  [[nodiscard]] bool is_cancelled(const ResizeRequest& request) const {
    return std::any_of(cancelled_.begin(), cancelled_.end(), [&](const CancelledWay& way) {
      return way.group == request.group && way.request == request.name;
    });
  }

  /// Other active requests ask for all of its nodes.
  [[nodiscard]] bool has_others(const ResizeRequest& request) const {
    const auto goes_on = [&](const Placed<ResizeRequest>& other) {
      const bool is_same = other->group == request.group && other->name == request.name;
      return !is_same && !is_cancelled(*other);
    };
    return std::all_of(request.nodes.begin(), request.nodes.end(), [&](const NodeName& name) {
      const NodePicture* const node = picture_.find(name);
      return node != nullptr && std::any_of(node->requests.begin(), node->requests.end(), goes_on);
    });
  }

  /// It is one of several: the rule that has made it would make it again.
  void keep_away(const ResizeRequest& request) {
    const NodePicture& node = *picture_.find(request.nodes.front());
    const Job* const job = node.jobs.empty() || node.is_static ? nullptr : node.jobs.front();
    plan_.not_again = {
        .waiter = waiter_key(
            config_.nodesets[node.nodeset].name, job == nullptr ? 0 : job->id, node.name),
        .restart_count = job == nullptr ? 0 : job->restart_count,
        .group = request.group,
        .request = request.name,
        .by = wish_.by,
        .since = wish_.now};
    plan_.sentences.push_back(
        fmt::format("nothing is asked for in group {} again while {} waits",
                    request.group,
                    job == nullptr ? "node " + node.name.text : fmt::format("job {}", job->id)));
  }

  void note_node(const NodeName& name, std::set<NodeName>& going) {
    const NodePicture* const node = picture_.find(name);
    if (node == nullptr || node->node == nullptr) return;
    if (node->is_coming_up()) going.insert(name);
    if (node->is_static)
      plan_.sentences.push_back(
          fmt::format("{} is a static node: the sweeper asks for it again "
                      "unless it is drained (scontrol update NodeName={} "
                      "State=DRAIN Reason=…)",
                      name,
                      name));
  }

  void give_back(const Job& job) {
    const TimeoutOutcome fate = fate_of(job, wish_.then);
    // The parts of a heterogeneous job go together: only its leader can be requeued.
    const JobId whole = job.het_job_id != 0 ? job.het_job_id : job.id;
    plan_.slurm.push_back(action(TellJob{
        .job = job.id, .comment = with_note(job.admin_comment, note_cancelled(why_, fate))}));
    plan_.sentences.push_back(fmt::format("job {} {}", job.id, fate_text(fate)));
    if (fate == TimeoutOutcome::Requeued || fate == TimeoutOutcome::Held)
      plan_.slurm.push_back(action(
          RequeueJob{.job = whole, .hold = fate == TimeoutOutcome::Held, .nodes = job.nodes}));
    else if (fate == TimeoutOutcome::Cancelled)
      plan_.slurm.push_back(action(CancelJob{.job = whole, .nodes = job.nodes}));
  }

  static std::string_view fate_text(TimeoutOutcome fate) {
    switch (fate) {
      case TimeoutOutcome::Requeued:
        return "is requeued: it asks again when its turn comes";
      case TimeoutOutcome::Held:
        return "is requeued and held: scontrol release lets it ask again";
      case TimeoutOutcome::Cancelled:
        return "is cancelled";
      case TimeoutOutcome::Ended:
        break;
    }
    return "ends, as it cannot be requeued";
  }

  void power_down(std::vector<NodeName> nodes) {
    if (nodes.empty()) return;
    plan_.sentences.push_back(fmt::format("power down {}", fold_hostlist(nodes)));
    plan_.slurm.push_back(action(UpdateNodes{.request = NodeRequest::PowerDownForce,
                                             .nodes = std::move(nodes),
                                             .reason = "flex: " + why_}));
  }

  const Config& config_;
  Picture picture_;
  const CancelledWays& cancelled_;
  const CancelWish& wish_;
  std::string why_{};
  CancelPlan plan_{};
};

}  // namespace

Result<CancelPlan> plan_cancel(const Config& config, const Snapshot& shot, const CancelWish& wish) {
  const auto request = choose(shot, wish.request);
  if (!request) return request.error();
  return Planner{config, shot, wish}.plan(*request);
}

}  // namespace flex
