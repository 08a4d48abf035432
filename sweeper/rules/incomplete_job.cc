// SPDX-License-Identifier: GPL-2.0-or-later
// incomplete_job: a job has some of its VMs and waits for others (one did not boot, one is lost).
// Those that are there cost money and end before the rest comes. They count only if they last for
// the job's time limit, and only for incomplete_timeout. Then everything goes back and is asked for
// together: with the job where it is while no node has registered; else the job is requeued. VMs of
// several nodesets cannot be asked for together. They go back all the same: what comes again has
// its whole lease before it.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/groups.h"
#include "lib/fleet/routes.h"
#include "lib/slurm/node_state.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace flex {

namespace {

/// A job that waits for VMs, and its nodes. Static nodes are not its own: they are in no list.
/// Neither are VMs that other jobs share; where such a node lacks its VM the job waits for it.
struct Part {
  std::vector<const NodePicture*> there{};   ///< have a VM
  std::vector<const NodePicture*> coming{};  ///< of those, not registered yet
  std::vector<const NodePicture*> lacking{};
  bool lacks_shared = false;  ///< one of those is another job's, too
  bool is_free = true;        ///< no other rule has taken up one of the nodes
};

bool is_shared(const NodePicture& node) {
  return node.jobs.size() > 1;
}

Part part_of(const Round& round, const Job& job) {
  Part part;
  for (const NodeName& name : job.nodes) {
    const NodePicture* const node = round.picture.find(name);
    if (node == nullptr || node->node == nullptr) continue;
    part.is_free = part.is_free && round.is_free(name);
    if (node->is_static) continue;
    if (lacks_vm(*node)) {
      part.lacking.push_back(node);
      part.lacks_shared = part.lacks_shared || is_shared(*node);
    }
    if (!node->has_vm() || is_shared(*node)) continue;
    part.there.push_back(node);
    if (node->is_coming_up()) part.coming.push_back(node);
  }
  return part;
}

/// VMs that come one by one are never asked for together.
bool comes_together(const Round& round, const NodePicture& node) {
  const auto routes = routes_of(round.nodeset_of(node), stockout_step(round, node));
  return routes.front().mode != Mode::Individual && !node.is_queued_alone() &&
         !round.is_stopped(node);
}

bool is_too_short(const Round& round, const Job& job, const NodePicture& node) {
  return node.entry->terminates &&
         !is_long_enough(round.nodeset_of(node), job, *node.entry->terminates, round.shot.now);
}

/// A request of this job has brought, or is to bring, the node's VM; of bulkInsert its description
/// says for whom it was made.
bool was_made_for(const NodePicture& node, const Job& job) {
  if (described_number(node.entry->description, "job") == job.id) return true;
  const auto& requests = node.entry.group->requests;
  return std::any_of(requests.begin(), requests.end(), [&](const ResizeRequest& request) {
    return request_job(request) == job.id &&
           std::find(request.nodes.begin(), request.nodes.end(), node.name) != request.nodes.end();
  });
}

/// What is wrong with it, and which VMs go.
struct Finding {
  std::string why{};
  std::optional<Seconds> limit{};  ///< incomplete_timeout; none: VMs end too early
  std::vector<const NodePicture*> going{};
};

/// The job has all of its VMs, but some were made for a shorter one that is gone. Those that have
/// registered stay: the job begins, and is told when they end.
std::optional<Finding> look_at_complete(const Round& round, const Job& job, const Part& part) {
  Finding finding{.why =
                      "VMs of its nodes were made for another job and end before its time limit"};
  for (const NodePicture* node : part.coming) {
    if (is_too_short(round, job, *node) && !was_made_for(*node, job)) finding.going.push_back(node);
  }
  if (finding.going.empty() || part.coming.size() < part.there.size()) return std::nullopt;
  return finding;
}

/// Whether one request can bring all of the job's VMs: not those of several nodesets or groups, nor
/// more than 1,000.
bool fits_one_request(const Round& round, const Job& job) {
  std::optional<std::pair<std::size_t, std::size_t>> group;
  std::size_t count = 0;
  for (const NodeName& name : job.nodes) {
    const Config::Place* const place = round.config.find(name);
    if (place == nullptr || place->is_static) continue;
    const NodesetConfig& nodeset = round.config.nodesets[place->nodeset];
    const std::size_t at = nodeset.mig_scope == MigScope::Job ? count : place->index;
    const std::pair mine{place->nodeset, at / group_capacity(nodeset)};
    if (!group) group = mine;
    if (mine != *group || ++count > kMaxRequestSize) return false;
  }
  return true;
}

/// How long those that are there wait for the rest: of several nodesets the longest; 0: for ever.
Seconds limit_of(const Round& round, const Part& part) {
  Seconds longest{0};
  for (const NodePicture* node : part.lacking) {
    const Seconds own = round.nodeset_of(*node).incomplete_timeout;
    if (own == Seconds{0}) return own;
    longest = std::max(longest, own);
  }
  return longest;
}

std::optional<Finding> look_at(Round& round, const Job& job, const Part& part) {
  // By its nodeset: the memory of nodesets that cannot be seen is kept.
  const std::string key = fmt::format(
      "{} job {} {}", round.nodeset_of(*part.there.front()).name, job.id, job.restart_count);
  if (part.lacking.empty()) {
    auto finding = look_at_complete(round, job, part);
    if (!finding || !round.see(Rule::IncompleteJob, key + " short").is_twice()) return std::nullopt;
    return finding;
  }
  const auto is_short = [&](const NodePicture* node) { return is_too_short(round, job, *node); };
  if (std::any_of(part.there.begin(), part.there.end(), is_short) &&
      round.see(Rule::IncompleteJob, key + " short").is_twice())
    return Finding{.why = "it waits for VMs, and those that it has end before its time limit",
                   .going = part.there};
  const Seconds limit = limit_of(round, part);
  const Sighting& seen = round.see(Rule::IncompleteJob, key);
  if (limit == Seconds{0} || !seen.is_twice() || seen.age() < limit) return std::nullopt;
  return Finding{.why = fmt::format("{} of its {} VMs have not come within incomplete_timeout {}",
                                    part.lacking.size(),
                                    part.lacking.size() + part.there.size(),
                                    format_slurm_time(limit)),
                 .limit = limit,
                 .going = part.there};
}

std::vector<NodeName> names_of(const std::vector<const NodePicture*>& nodes) {
  std::vector<NodeName> names;
  for (const NodePicture* node : nodes) names.push_back(node->name);
  return names;
}

enum class Cancels {
  None,    ///< it waits for none
  Asked,   ///< they are cancelled in this round
  NotNow,  ///< one is just being served, or the budget does not allow it
};

/// What it waits for. `are_kept`: they are only looked at.
Cancels cancel_requests(
    Round& round, const Job& job, const Part& part, const std::string& why, bool are_kept) {
  std::map<const ResizeRequest*, Placed<ResizeRequest>> waiting;
  for (const NodePicture* node : part.lacking) {
    for (const Placed<ResizeRequest>& request : node->requests) {
      if (!is_our_request(*request) || request_job(*request) != job.id) continue;
      if (request->state != RequestState::Accepted) return Cancels::NotNow;
      if (round.is_free(*request.group, *request)) waiting.emplace(request.item, request);
    }
  }
  if (waiting.empty() || are_kept) return Cancels::None;
  if (round.spend(waiting.size()) < waiting.size()) return Cancels::NotNow;
  for (const auto& [item, request] : waiting)
    cancel_request(round, Rule::IncompleteJob, why, request);
  return Cancels::Asked;
}

/// No node has registered: the job stays where it is, unrequested_node asks for all of its nodes.
void take_vms(Round& round, const Finding& finding) {
  std::map<const SweptGroup*, std::vector<Instance>> doomed;
  for (const NodePicture* node : finding.going) doomed[node->entry.group].push_back(*node->entry);
  for (const auto& [group, instances] : doomed)
    delete_instances(round, Rule::IncompleteJob, finding.why, group->group.name, instances, false);
}

void requeue(Round& round, const Job& job, const Part& part, const std::string& why) {
  std::vector<NodeName> nodes = names_of(part.there);
  for (const NodePicture* node : part.lacking) {
    if (node->is_coming_up() && !is_shared(*node)) nodes.push_back(node->name);
  }
  const JobId whole = job.het_job_id != 0 ? job.het_job_id : job.id;
  round.add(Rule::IncompleteJob, why, RequeueJob{.job = whole, .hold = false, .nodes = job.nodes});
  round.add(Rule::IncompleteJob,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(nodes),
                        .reason = "flex: " + why});
}

void give_back(Round& round, const Job& job, const Part& part, const Finding& finding) {
  // Where it is, it would wait for the other job's request whatever is asked for.
  const bool is_requeued = part.coming.size() < part.there.size() || part.lacks_shared;
  // What can neither wait without its nodes nor be requeued keeps what it has.
  if (is_requeued && fate_of(job, OnTimeout::Requeue) != TimeoutOutcome::Requeued) return;
  // Where not all can be asked for together, the rest keeps its place in Google's queue.
  const bool are_kept = !is_requeued && !fits_one_request(round, job);
  const Cancels cancels = cancel_requests(round, job, part, finding.why, are_kept);
  if (cancels == Cancels::NotNow) return;
  round.claim(names_of(part.there));
  round.claim(names_of(part.lacking));
  // What was served in the meantime cannot be cancelled: then the job is complete. The VMs go in
  // the next round, when it is certain that nothing more comes.
  if (cancels == Cancels::Asked) return;
  tell(round,
       Rule::IncompleteJob,
       finding.why,
       job,
       note_incomplete(finding.going.size(),
                       part.there.size() + part.lacking.size(),
                       finding.limit,
                       is_requeued));
  if (is_requeued)
    requeue(round, job, part, finding.why);
  else
    take_vms(round, finding);
}

}  // namespace

void incomplete_job(Round& round) {
  for (const Job& job : round.shot.jobs.items) {
    if (!job.holds_nodes() || !job.is_configuring) continue;
    const Part part = part_of(round, job);
    if (part.there.empty() || !comes_together(round, *part.there.front())) continue;
    if (!part.lacking.empty() && !comes_together(round, *part.lacking.front())) continue;
    const auto finding = look_at(round, job, part);
    if (finding && part.is_free && !round.is_told(job.id)) give_back(round, job, part, *finding);
  }
}

}  // namespace flex
