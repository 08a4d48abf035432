// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

std::string with_incarnation(std::string name, const std::string& id, TimePoint created) {
  return fmt::format(
      "{} {}", name, id.empty() ? std::to_string(created.time_since_epoch().count()) : id);
}

}  // namespace

std::string key_of(const Group& group) {
  return with_incarnation(group.name.text, group.id, group.created);
}

std::string key_of(const ResizeRequest& request) {
  return with_incarnation(
      request.group.text + "/" + request.name.text, request.id, request.created);
}

std::string key_of(const Policy& policy) {
  return with_incarnation(policy.name, policy.id, policy.created);
}

std::string key_of(const SweptGroup& group, const Instance& instance) {
  return fmt::format("{}/{} {}", key_of(group.group), instance.name, instance.id);
}

std::string vm_key(const NodePicture& node) {
  return node.name.text + " " + (node.entry ? node.entry->id : "");
}

std::vector<Placed<ResizeRequest>> queued_requests(const Round& round) {
  std::vector<Placed<ResizeRequest>> queued;
  for (const SweptGroup& group : round.shot.groups) {
    for (const ResizeRequest& request : group.requests) {
      if (request.state == RequestState::Accepted && is_our_request(request) &&
          !request.nodes.empty() && round.is_free(group, request))
        queued.push_back({.item = &request, .group = &group});
    }
  }
  return queued;
}

Seconds pause_after(const RetryConfig& retry, std::uint32_t failures) {
  Seconds delay = retry.base;
  for (std::uint32_t i = 1; i < failures && delay < retry.max; ++i) delay *= 2;
  return std::min(delay, retry.max);
}

bool is_due(const Round& round, const NodePicture& node) {
  const auto retry = round.memory.retries.find(node.name);
  return retry == round.memory.retries.end() || retry->second.next <= round.shot.now;
}

std::vector<const Job*> jobs_on(const Picture& picture, const std::vector<NodeName>& nodes) {
  std::vector<const Job*> jobs;
  std::set<JobId> seen;
  for (const NodeName& name : nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr) continue;
    for (const Job* job : node->jobs) {
      if (seen.insert(job->id).second) jobs.push_back(job);
    }
  }
  return jobs;
}

std::vector<NodeName> coming_for(const Picture& picture,
                                 const Job& job,
                                 const std::vector<const Job*>& jobs) {
  std::vector<NodeName> coming;
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr || !node->is_coming_up()) continue;
    const bool is_shared = std::any_of(node->jobs.begin(), node->jobs.end(), [&](const Job* on) {
      return std::find(jobs.begin(), jobs.end(), on) == jobs.end();
    });
    if (!is_shared) coming.push_back(name);
  }
  return coming;
}

TimePoint waits_since(const Round& round, const Job* job, TimePoint otherwise) {
  const bool is_known =
      job != nullptr && job->start_time != TimePoint{} && job->start_time <= round.shot.now;
  return is_known ? job->start_time : otherwise;
}

Turn make_turn(const Round& round,
               Rule rule,
               std::string why,
               std::vector<NodeName> nodes,
               TimePoint first_seen) {
  // A request may name nodes that the config no longer has.
  std::erase_if(nodes, [&](const NodeName& name) { return round.config.find(name) == nullptr; });
  const NodePicture& node = *round.picture.find(nodes.front());
  const Job* const job = node.jobs.empty() ? nullptr : node.jobs.front();
  Turn turn{.rule = rule, .why = std::move(why), .nodes = std::move(nodes)};
  turn.job = job == nullptr ? 0 : job->id;
  turn.since = waits_since(round, job, first_seen);
  return turn;
}

std::string waiter_of(const Round& round, const NodePicture& node) {
  const JobId job = node.jobs.empty() || node.is_static ? 0 : node.jobs.front()->id;
  return waiter_key(round.nodeset_of(node).name, job, node.name);
}

std::size_t stockout_step(const Round& round, const NodePicture& node) {
  const auto found = round.memory.stockouts.find(waiter_of(round, node));
  return found == round.memory.stockouts.end() ? 0 : found->second.step;
}

bool may_still_come(Round& round, const NodePicture& node) {
  constexpr Seconds kPatience{600};
  if (!node.is_bulk_pending) return false;
  const std::string key = fmt::format("{} bulk {}", node.name, waiter_of(round, node));
  return round.see(Rule::UnrequestedNode, key).age() < kPatience;
}

bool is_unserved(const NodePicture& node) {
  return node.node != nullptr && is_powering_up(*node.node) && node.is_coming_up() &&
         !node.has_vm() && !node.is_asked_for();
}

bool lacks_vm(const NodePicture& node) {
  if (node.node == nullptr || node.has_vm()) return false;
  const bool is_to_come =
      is_allocated(*node.node) && is_powered_down(*node.node) && !is_powering_down(*node.node);
  return node.is_coming_up() || is_to_come;
}

const std::vector<const Job*>& PictureFacts::jobs_on(const NodeName& node) const {
  static const std::vector<const Job*> kNone;
  const NodePicture* const found = picture_.find(node);
  return found == nullptr ? kNone : found->jobs;
}

bool PictureFacts::lacks_vm(const NodeName& node) const {
  const NodePicture* const found = picture_.find(node);
  return found != nullptr && flex::lacks_vm(*found);
}

std::vector<const ResizeRequest*> PictureFacts::requests_on(const NodeName& node) const {
  std::vector<const ResizeRequest*> requests;
  const NodePicture* const found = picture_.find(node);
  if (found == nullptr) return requests;
  for (const Placed<ResizeRequest>& request : found->requests) {
    if (is_our_request(*request)) requests.push_back(request.item);
  }
  return requests;
}

std::vector<NodeName> with_rest_of_job(const Round& round, std::vector<NodeName> nodes) {
  const NodePicture* const first = round.picture.find(nodes.front());
  if (first == nullptr || first->jobs.empty() || first->is_static) return nodes;
  std::unordered_set<NodeName> known(nodes.begin(), nodes.end());
  for (const NodeName& name : first->jobs.front()->nodes) {
    const NodePicture* const node = round.picture.find(name);
    if (node == nullptr || node->nodeset != first->nodeset || node->is_static ||
        !is_unserved(*node) || !round.is_free(name) || round.is_queued(name))
      continue;
    if (node->jobs.front() == first->jobs.front() && known.insert(name).second)
      nodes.push_back(name);
  }
  return nodes;
}

namespace {

/// The job that a node of the turn is asked for: the turn's own, if it holds the node; else the
/// first on it; 0: none, or a static node, which is asked for by itself.
JobId asker_of(const Round& round, const Turn& turn, const NodeName& name) {
  const NodePicture& node = *round.picture.find(name);
  if (node.is_static) return 0;
  const std::vector<const Job*>& jobs = node.jobs;
  const bool is_own =
      std::any_of(jobs.begin(), jobs.end(), [&](const Job* job) { return job->id == turn.job; });
  if (is_own) return turn.job;
  return jobs.empty() ? 0 : jobs.front()->id;
}

/// Who wants which of the turns' nodes, in the order of the turns. A node that is in two of them
/// is the first one's.
Demand demand_of(const Round& round, const std::vector<const Turn*>& turns) {
  Demand demand;
  std::unordered_set<NodeName> known;
  for (const Turn* turn : turns) {
    const std::size_t first = demand.jobs.size();
    for (const NodeName& name : turn->nodes) {
      if (!known.insert(name).second) continue;
      const JobId id = asker_of(round, *turn, name);
      if (id == 0) {
        demand.jobless.push_back(name);
        for (const Job* job : round.picture.find(name)->jobs)
          demand.on_static.push_back({.job = *job, .nodes = {name}});
        continue;
      }
      auto part = std::find_if(demand.jobs.begin() + static_cast<std::ptrdiff_t>(first),
                               demand.jobs.end(),
                               [&](const Demand::JobNodes& each) { return each.job.id == id; });
      if (part == demand.jobs.end())
        part = demand.jobs.insert(part, {.job = *round.picture.find_job(id)});
      part->nodes.push_back(name);
    }
  }
  demand.shut = shut_for(round, {known.begin(), known.end()});
  for (Demand::JobNodes& part : demand.jobs)
    part.least_run = needed_run(round.config, PictureFacts{round.picture}, part.nodes);
  return demand;
}

}  // namespace

AskForNodes plan_for(const Round& round,
                     const std::vector<const Turn*>& turns,
                     const PlanOptions& options) {
  std::set<std::size_t> nodesets;
  for (const Turn* turn : turns) {
    for (const NodeName& name : turn->nodes) nodesets.insert(round.config.find(name)->nodeset);
  }
  AskForNodes ask;
  ask.demand = demand_of(round, turns);
  ask.plan = plan_resume(round.config,
                         round.shot.cluster,
                         ask.demand,
                         round.picture.fleet_of({nodesets.begin(), nodesets.end()}),
                         options);
  return ask;
}

void cancel_request(Round& round,
                    Rule rule,
                    const std::string& why,
                    const Placed<ResizeRequest>& request) {
  round.claim_request(*request.group, *request);
  round.add(rule,
            why,
            CancelRequest{.group = request.group->group.name,
                          .request = request->name,
                          .nodes = request->nodes,
                          .job = request_job(*request)});
}

void tell(Round& round, Rule rule, const std::string& why, const Job& job, std::string_view text) {
  std::string comment = with_note(job.admin_comment, text);
  if (comment == job.admin_comment) return;
  round.add(rule, why, TellJob{.job = job.id, .comment = std::move(comment)});
}

std::size_t delete_instances(Round& round,
                             Rule rule,
                             const std::string& why,
                             const MigName& group,
                             const std::vector<Instance>& doomed,
                             bool keep_serial_log) {
  const std::size_t granted = round.spend(doomed.size());
  for (std::size_t at = 0; at < granted; at += kMaxRequestSize) {
    const auto begin = doomed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        doomed.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMaxRequestSize, granted));
    round.add(rule,
              why,
              DeleteInstances{
                  .group = group, .instances = {begin, end}, .keep_serial_log = keep_serial_log});
  }
  return granted;
}

}  // namespace flex
