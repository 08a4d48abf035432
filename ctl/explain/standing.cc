// SPDX-License-Identifier: GPL-2.0-or-later
// How it stands with a job, a node or a request, and what comes next.
#include "ctl/explain/remains.h"
#include "ctl/explain/story.h"
#include "ctl/known.h"
#include "ctl/terminal.h"
#include "lib/core/duration.h"
#include "lib/fleet/groups.h"
#include "lib/gce/urls.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/job_state.h"
#include "lib/slurm/node_state.h"
#include "sweeper/lease.h"
#include "sweeper/patience.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex {

namespace {

constexpr std::size_t kMostRequests = 3;
constexpr std::string_view kUnusable =
    "undrained while off, so that slurmctld waits for an answer of it; the sweeper powers it down "
    "once more, which mends that";

/// A sentence of Google's within one of ours.
std::string_view without_stop(std::string_view text) {
  return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

class Standing {
 public:
  Standing(const std::vector<Event>& events, const Facts& facts, const Picture& picture)
      : events_(events), facts_(facts), picture_(picture), now_(facts.shot.now) {}

  std::string of_job(JobId id) const {
    const Job* const job = picture_.find_job(id);
    if (job == nullptr) return as_told_last();
    if (job->is_finished)
      return fmt::format("The job is over: {}{}.",
                         job_state_text(*job),
                         job->end_time == TimePoint{} ? "" : " at " + clock(job->end_time));
    if (job->is_pending)
      return "The job waits in Slurm's queue; VMs are asked for when slurmctld gives it nodes." +
             unusable_for(*job) + as_it_was_told(*job);
    if (job->is_configuring) return waiting(job->nodes, job);
    return running(*job);
  }

  std::string of_node(const NodeName& name) const {
    const std::string entries = of_entries(name);
    const NodePicture* const node = picture_.find(name);
    if (node == nullptr)
      return entries.empty() ? "No nodeset of flex-start.yaml has this node."
                             : "No nodeset of flex-start.yaml has this node. " + entries;
    if (node->node == nullptr) return of_unknown(*node, entries);
    std::string text = of_state(*node);
    if (is_draining(*node->node)) text += fmt::format(" It is drained: {}.", node->node->reason);
    return entries.empty() ? text : text + " " + entries;
  }

  /// Where several groups have one of this name, each of them.
  std::string of_request(const Subject& subject) const {
    std::string text;
    for (const SweptGroup& group : facts_.shot.groups) {
      for (const ResizeRequest& request : group.requests) {
        if (!subject.is_request(group.group.name.text, request.name.text)) continue;
        const std::string label = label_of(group, request);
        const bool is_one_of_several = label != request.name.text && subject.group.empty();
        if (!text.empty()) text += " ";
        if (is_one_of_several) text += fmt::format("In group {}: ", group.group.name);
        text += of_listed(group, request);
      }
    }
    if (!text.empty()) return text;
    if (!facts_.has_cloud) return as_told_last();
    return fmt::format("Google does not list it any more{}.{}",
                       how_it_ended(subject, events_, now_),
                       vms_left(subject, events_, facts_));
  }

 private:
  [[nodiscard]] std::string clock(TimePoint time) const { return clock_text(time, now_); }

  [[nodiscard]] std::string soon(TimePoint time) const { return soon_text(time, now_); }

  /// "14:02:31 (2 h 13 min)".
  [[nodiscard]] std::string since(TimePoint time) const {
    return fmt::format("{} ({})", clock(time), span_text(std::max(Seconds{0}, now_ - time)));
  }

  [[nodiscard]] std::string as_told_last() const {
    if (events_.empty()) return "Nothing more is known.";
    const StoryLine last = line_of(events_.back(), now_);
    return fmt::format("The last that is known is of {}.", clock(last.when));
  }

  /// Nodes of its partition that slurmctld may give to no job.
  [[nodiscard]] std::string unusable_for(const Job& job) const {
    std::vector<NodeName> unusable;
    for (const Partition& partition : facts_.shot.partitions.items) {
      // A job may name several.
      if (("," + job.partition + ",").find("," + partition.name + ",") == std::string::npos)
        continue;
      for (const NodeName& name : partition.nodes) {
        const NodePicture* const node = picture_.find(name);
        if (node != nullptr && node->node != nullptr && is_unusable(*node->node))
          unusable.push_back(name);
      }
    }
    if (unusable.empty()) return {};
    return fmt::format(" slurmctld may not give it {}: {}.", fold_hostlist(unusable), kUnusable);
  }

  static std::string as_it_was_told(const Job& job) {
    const std::size_t at = job.admin_comment.find(kNotePrefix);
    if (at == std::string::npos) return {};
    return fmt::format(" It was told: {}.", job.admin_comment.substr(at + kNotePrefix.size()));
  }

  // ---- waiting ----

  [[nodiscard]] std::string label_of(const SweptGroup& group, const ResizeRequest& request) const {
    return request_label(facts_, group.group.name.text, request.name.text);
  }

  /// What nodes wait for, of which there may be several things.
  struct Waits {
    std::size_t ours = 0;
    std::size_t with_vm = 0;
    std::size_t up = 0;
    std::set<const ResizeRequest*> told{};
    std::string requests{};
    std::vector<const NodePicture*> alone{};  ///< asked for one by one
    std::vector<const NodePicture*> bulk{};   ///< a bulkInsert that is under way may be for it
    const NodePicture* unserved = nullptr;    ///< the first for which nothing is asked
  };

  void look_at(const NodePicture& node, const Job* job, Waits& waits) const {
    ++waits.ours;
    if (node.has_vm()) ++waits.with_vm;
    if (node.has_vm() && node.node != nullptr && is_up(*node.node)) ++waits.up;
    for (const auto& request : node.requests) {
      if (waits.told.insert(request.item).second && waits.told.size() <= kMostRequests)
        waits.requests += queued(request, node, job) + " ";
    }
    if (node.has_vm() || node.request) return;
    if (node.is_queued_alone())
      waits.alone.push_back(&node);
    else if (node.is_bulk_pending)
      waits.bulk.push_back(&node);
    else if (waits.unserved == nullptr)
      waits.unserved = &node;
  }

  [[nodiscard]] std::string waiting(const std::vector<NodeName>& nodes, const Job* job) const {
    Waits waits;
    for (const NodeName& name : nodes) {
      if (const NodePicture* const node = picture_.find(name)) look_at(*node, job, waits);
    }
    std::string text = waits.requests;
    if (waits.told.size() > kMostRequests)
      text += fmt::format("{} more requests wait. ", waits.told.size() - kMostRequests);
    if (!waits.alone.empty()) text += one_by_one(waits.alone) + " ";
    if (!waits.bulk.empty())
      text += fmt::format(
          "A bulkInsert is under way in the region, which may be for {}: until it is over nothing "
          "more is asked for. ",
          list_of(waits.bulk));
    if (waits.with_vm > 0)
      text += fmt::format(
          "{} of {} VMs are there, {} of them registered{}. ",
          waits.with_vm,
          waits.ours,
          waits.up,
          waits.up < waits.with_vm ? "; one that does not within boot_timeout is replaced" : "");
    if (waits.unserved != nullptr) text += not_asked(*waits.unserved);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text.empty() ? "It waits for its nodes." : text;
  }

  static std::string list_of(const std::vector<const NodePicture*>& nodes) {
    std::vector<NodeName> names;
    names.reserve(nodes.size());
    for (const NodePicture* node : nodes) names.push_back(node->name);
    return fold_hostlist(names);
  }

  /// VMs that Google makes one by one, without a request: what it last said of the first.
  [[nodiscard]] std::string one_by_one(const std::vector<const NodePicture*>& nodes) const {
    std::string text = fmt::format("{} {} asked for one by one and {} not come yet",
                                   list_of(nodes),
                                   nodes.size() == 1 ? "is" : "are",
                                   nodes.size() == 1 ? "has" : "have");
    for (const NodePicture* node : nodes) {
      const auto& said = node->alone.front()->last_error;
      if (said) return text + google_says(*said) + ".";
    }
    return text + ".";
  }

  [[nodiscard]] std::string google_says(const ProviderError& said) const {
    std::string text = fmt::format("; Google says {}: {}", said.code, without_stop(said.message));
    if (said.estimated_availability)
      text += fmt::format("; Google estimates {}", soon(*said.estimated_availability));
    return text;
  }

  [[nodiscard]] std::string queued(const Placed<ResizeRequest>& placed,
                                   const NodePicture& node,
                                   const Job* job) const {
    const ResizeRequest& request = *placed;
    const std::string label = label_of(*placed.group, request);
    if (request.state == RequestState::Creating)
      return fmt::format("Request {} is being made.", label);
    if (request.state == RequestState::Provisioning)
      return fmt::format("Google is making the VMs of {}.", label);
    std::string text = fmt::format("Request {} waits in Google's queue since {}, attempt {}",
                                   label,
                                   since(request.created),
                                   request_attempt(request));
    if (request.last_attempt) text += google_says(*request.last_attempt);
    return text + "; " + patience(request, node, job) + ".";
  }

  [[nodiscard]] std::string patience(const ResizeRequest& request,
                                     const NodePicture& node,
                                     const Job* job) const {
    const NodesetConfig& nodeset = facts_.config.nodesets[node.nodeset];
    if (job == nullptr || node.is_static) return "it waits for as long as it takes";
    const Patience limit = patience_of(nodeset, *job);
    if (limit.limit == Seconds{0}) return "it waits for as long as it takes";
    return fmt::format("gives up at {}", soon(began_to_wait(request, *job) + limit.limit));
  }

  /// No VM, and nothing in Google's queue.
  [[nodiscard]] std::string not_asked(const NodePicture& node) const {
    const std::string& nodeset = facts_.config.nodesets[node.nodeset].name;
    if (const std::string stopped = stopped_text(facts_.memory, nodeset); !stopped.empty())
      return fmt::format("Nodeset {} {}; nothing is asked for until flexctl resume {}.",
                         nodeset,
                         stopped,
                         nodeset);
    const RetryState* const retry = find_retry(node);
    if (retry != nullptr && retry->next > now_)
      return fmt::format("The next attempt is at {}, after {} failed; the last with: {}.",
                         soon(retry->next),
                         retry->attempts + retry->refusals,
                         retry->why);
    if (retry != nullptr)
      return fmt::format(
          "The sweeper asks again in its next round; the last attempt failed with: {}.",
          retry->why);
    if (!facts_.has_cloud) return "What Google has for it cannot be seen.";
    return "Nothing is asked of Google for it now: the sweeper does so in its next rounds, longest "
           "waiting first.";
  }

  /// It is kept under the first node of those that are asked for together.
  [[nodiscard]] const RetryState* find_retry(const NodePicture& node) const {
    const auto find = [&](const NodeName& name) -> const RetryState* {
      const auto found = facts_.memory.retries.find(name);
      return found == facts_.memory.retries.end() ? nullptr : &found->second;
    };
    if (const RetryState* own = find(node.name)) return own;
    for (const Job* job : node.jobs) {
      for (const NodeName& name : job->nodes) {
        if (const RetryState* others = find(name)) return others;
      }
    }
    return nullptr;
  }

  // ---- running ----

  [[nodiscard]] std::string running(const Job& job) const {
    std::string text =
        fmt::format("The job runs since {} on {}", since(job.start_time), fold_hostlist(job.nodes));
    const auto lease = lease_of(picture_, job);
    if (!lease) return text + (facts_.has_cloud ? "; no VM of it has an end that is known." : ".");
    text += fmt::format("; its VMs end at {}", soon(lease->ends));
    if (const auto overrun = overrun_of(job, *lease))
      return text +
             fmt::format(", {}: it is {} then.",
                         overrun->time_limit ? "before its time limit" : "and it has no limit",
                         overrun->is_requeued ? "requeued" : "ended");
    return text + fmt::format(", after its time limit at {}.", clock(job.end_time));
  }

  // ---- nodes ----

  /// Of which Slurm says nothing.
  [[nodiscard]] std::string of_unknown(const NodePicture& node, const std::string& entries) const {
    std::string text = facts_.has_slurm ? "slurmctld does not know this node."
                                        : "What Slurm does with it cannot be seen.";
    for (const auto& request : node.requests) text += " " + queued(request, node, nullptr);
    if (node.is_queued_alone()) text += " " + one_by_one({&node});
    if (!entries.empty()) return text + " " + entries;
    if (!facts_.has_cloud) return text + " What Google has for it cannot be seen, either.";
    return node.is_asked_for() ? text
                               : text + " Google has no VM of this name, and none is asked for.";
  }

  [[nodiscard]] std::string of_state(const NodePicture& node) const {
    if (node.is_coming_up())
      return "slurmctld brings the node up. " +
             waiting({node.name}, node.jobs.empty() ? nullptr : node.jobs.front());
    if (is_powering_down(*node.node)) return "slurmctld takes the node down.";
    if (is_up(*node.node)) {
      if (!node.jobs.empty())
        return fmt::format("The node is up; job {} is on it.", node.jobs.front()->id);
      return node.is_static ? "The node is up and idle; it is static and stays."
                            : "The node is up and idle; Slurm powers it down after SuspendTime.";
    }
    if (is_unusable(*node.node))
      return fmt::format("The node is powered down and unusable: {}.", kUnusable);
    if (is_powered_down(*node.node))
      return node.is_static ? "The node is powered down; it is static, the sweeper powers it up."
                            : "The node is powered down; a VM is asked for when slurmctld gives it "
                              "to a job.";
    return fmt::format("Slurm says {}.", state_text(*node.node));
  }

  /// The VMs of this name, whoever wants them.
  [[nodiscard]] std::string of_entries(const NodeName& name) const {
    std::string text;
    const NodePicture* const node = picture_.find(name);
    for (const SweptGroup& group : facts_.shot.groups) {
      for (const Instance& instance : group.instances) {
        if (instance.name != name || instance.is_queued() || instance.is_dead()) continue;
        if (!text.empty()) text += " ";
        const std::string vm = vm_text(group, instance);
        if (instance.is_leaving()) text += fmt::format("{} is being deleted.", vm);
        // Where slurmctld does not answer nobody knows who wants it.
        else if (!facts_.has_slurm || (node != nullptr && node->wants_vm()))
          text += fmt::format("{} is there{}.", vm, its_end(instance));
        else
          text += orphan(group, instance, vm);
      }
    }
    return text;
  }

  static std::string vm_text(const SweptGroup& group, const Instance& instance) {
    const std::string_view zone = zone_of(instance.url);
    return fmt::format(
        "VM {}{}{}{}",
        instance.name,
        instance.id.empty() ? "" : fmt::format(" (id {})", instance.id),
        zone.empty() ? "" : fmt::format(" in {}", zone),
        group.group.name.empty() ? "" : fmt::format(", group {},", group.group.name));
  }

  [[nodiscard]] std::string its_end(const Instance& instance) const {
    return instance.terminates ? fmt::format("; it ends at {}", soon(*instance.terminates)) : "";
  }

  /// Whose it was: as Google's list of requests says, else the history.
  [[nodiscard]] std::string whose(const SweptGroup& group, const NodeName& name) const {
    std::string request;
    JobId job = 0;
    for (const Event& event : events_) {
      const bool is_bringer = event.what == "vm_up" || event.what == "requested";
      if (!is_bringer || event.group != group.group.name.text) continue;
      request = event.request;
      job = event.job;
    }
    for (const ResizeRequest& one : group.requests) {
      if (std::find(one.nodes.begin(), one.nodes.end(), name) == one.nodes.end()) continue;
      request = one.name.text;
      job = request_job(one);
    }
    if (request.empty()) return {};
    return fmt::format(" It came from request {}{}.",
                       request,
                       job == 0 ? ", which no job of ours made" : fmt::format(", for job {}", job));
  }

  [[nodiscard]] std::string orphan(const SweptGroup& group,
                                   const Instance& instance,
                                   const std::string& vm) const {
    std::string text =
        fmt::format("{} runs, but nobody wants it.{}", vm, whose(group, instance.name));
    const Sighting* const seen =
        facts_.memory.find(to_string(Rule::OrphanInstance), key_of(group, instance));
    const Seconds grace = facts_.config.sweeper.orphan_grace;
    if (seen == nullptr)
      return text +
             fmt::format(" The sweeper deletes it when it has seen it for orphan_grace ({}).",
                         span_text(grace));
    return text + fmt::format(" Nobody wants it since {}; the sweeper deletes it at {}.",
                              since(seen->first),
                              soon(seen->first + grace));
  }

  // ---- requests ----

  [[nodiscard]] std::string of_listed(const SweptGroup& group, const ResizeRequest& request) const {
    const JobId id = request_job(request);
    const Job* const job = picture_.find_job(id);
    const NodePicture* const node =
        request.nodes.empty() ? nullptr : picture_.find(request.nodes.front());
    if (request.is_active() && node != nullptr)
      return queued({.item = &request, .group = &group}, *node, job);
    switch (request.state) {
      case RequestState::Succeeded:
        return "Google has served it." + vms_left({.kind = Subject::Kind::Request,
                                                   .name = request.name.text,
                                                   .job = 0,
                                                   .group = group.group.name.text},
                                                  events_,
                                                  facts_);
      case RequestState::Failed: {
        std::string text = "Google has given up on it";
        if (request.error)
          text += fmt::format(": {}: {}", request.error->code, request.error->message);
        const bool is_open = node != nullptr && is_unserved_now(*node);
        return text + "." + (is_open ? " " + not_asked(*node) : "");
      }
      case RequestState::Cancelled:
        return "It is cancelled.";
      case RequestState::Deleting:
        return "It is being deleted.";
      case RequestState::Creating:
      case RequestState::Accepted:
      case RequestState::Provisioning:
      case RequestState::Unknown:
        break;
    }
    return fmt::format("It waits in Google's queue since {}.", since(request.created));
  }

  static bool is_unserved_now(const NodePicture& node) {
    return node.is_coming_up() && !node.has_vm() && !node.is_asked_for();
  }

  const std::vector<Event>& events_;
  const Facts& facts_;
  const Picture& picture_;
  TimePoint now_;
};

}  // namespace

std::string how_it_stands(const Subject& subject,
                          const std::vector<Event>& events,
                          const Facts& facts,
                          const Picture& picture) {
  const Standing standing{events, facts, picture};
  switch (subject.kind) {
    case Subject::Kind::Job:
      return printable(standing.of_job(subject.job));
    case Subject::Kind::Node:
      return printable(standing.of_node({subject.name}));
    case Subject::Kind::Request:
      return printable(standing.of_request(subject));
  }
  return {};
}

}  // namespace flex
