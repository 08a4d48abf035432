// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/chronicle.h"

#include "lib/core/duration.h"
#include "lib/core/text.h"
#include "lib/fleet/groups.h"
#include "lib/gce/urls.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/job_state.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace flex {

namespace {

/// The same reason in other words, or another estimate, is told at most this often.
constexpr Seconds kAttemptPause = std::chrono::minutes{10};
constexpr std::size_t kMostMessage = 300;

std::string key_of(const std::string& group, const std::string& name) {
  return group + "/" + name;
}

bool is_up(const Instance& instance) {
  return instance.status == InstanceStatus::Running && !instance.is_leaving();
}

/// A VM that came, or was seen before, and is still there.
bool is_there(const Instance& instance) {
  return !instance.is_dead() && !instance.is_leaving() && !instance.is_queued();
}

/// Which request brought the VMs of a group, by node: the newest that was not in vain.
std::unordered_map<NodeName, const ResizeRequest*> bringers_of(const SweptGroup& group) {
  std::unordered_map<NodeName, const ResizeRequest*> bringers;
  for (const ResizeRequest& request : group.requests) {
    if (request.state == RequestState::Failed || request.state == RequestState::Cancelled) continue;
    for (const NodeName& node : request.nodes) {
      const ResizeRequest*& best = bringers[node];
      if (best == nullptr || best->created < request.created) best = &request;
    }
  }
  return bringers;
}

class Chronicler {
 public:
  Chronicler(const Config& config, const Snapshot& shot, Chronicle& known, std::size_t most)
      : config_(config), shot_(shot), known_(known), most_(most) {
    ++known_.round;
    for (const Node& node : shot.nodes.items) nodes_[node.name] = &node;
  }

  std::vector<Event> run() {
    for (const SweptGroup& group : shot_.groups) look_at_requests(group);
    forget_requests();
    for (const SweptGroup& group : shot_.groups) look_at_vms(group);
    look_at_jobs();
    end_jobs();
    end_vms();
    std::vector<Event> events = std::move(events_);
    for (auto& [key, fold] : folds_) {
      set_nodes(fold.event, fold.nodes);
      events.push_back(std::move(fold.event));
    }
    std::stable_sort(events.begin(), events.end(), [](const Event& left, const Event& right) {
      return rank(left.what) < rank(right.what);
    });
    events.insert(events.begin(), replaced_.begin(), replaced_.end());
    if (known_.has_begun) return events;
    known_.has_begun = known_.is_changed = true;
    return {};
  }

 private:
  /// Events of many nodes, told as one.
  struct Fold {
    Event event{};
    std::vector<NodeName> nodes{};
  };

  /// What, group, request, zone, how it ended, job.
  using FoldKey =
      std::tuple<std::string, std::string, std::string, std::string, std::string, JobId>;

  /// In which order things happen that were seen in one look.
  static int rank(std::string_view what) {
    constexpr std::string_view kOrder[] = {"queued",
                                           "attempt",
                                           "succeeded",
                                           "failed",
                                           "cancelled",
                                           "vm_up",
                                           "registered",
                                           "job_started",
                                           "job_ended",
                                           "vm_gone"};
    const auto* const found = std::find(std::begin(kOrder), std::end(kOrder), what);
    return static_cast<int>(found - std::begin(kOrder));
  }

  [[nodiscard]] bool is_full() const {
    return known_.has_begun && replaced_.size() + events_.size() + folds_.size() >= most_;
  }

  [[nodiscard]] Event event(std::string_view what) const {
    Event made;
    made.when = shot_.now;
    made.program = "flex-sweeper";
    made.what = what;
    return made;
  }

  // ---- requests ----

  void look_at_requests(const SweptGroup& group) {
    for (const ResizeRequest& request : group.requests) {
      const std::string key = key_of(group.group.name.text, request.name.text);
      auto found = known_.requests.find(key);
      // Another request of the same name: the one before is gone.
      const bool is_seen = found != known_.requests.end() && !found->second.id.empty();
      if (is_seen && found->second.id != key_of(request)) {
        found->second.round = known_.round;
        if (is_full()) continue;
        tell_unlisted(key, found->second, replaced_);
        known_.requests.erase(found);
        found = known_.requests.end();
      }
      const bool is_new = found == known_.requests.end();
      if (is_new && is_full()) continue;
      SeenRequest& seen = is_new ? known_.requests[key] : found->second;
      seen.round = known_.round;
      if (seen.id.empty()) seen.id = key_of(request);
      if (is_full()) continue;
      if (is_new || seen.state != request.state) tell_state(group, request, seen, is_new);
      if (request.is_active()) tell_attempt(group, request, seen);
    }
  }

  Event request_event(std::string_view what,
                      const SweptGroup& group,
                      const ResizeRequest& request) const {
    Event made = event(what);
    made.job = request_job(request);
    made.nodeset = group.nodeset;
    made.group = group.group.name.text;
    made.request = request.name.text;
    set_nodes(made, request.nodes);
    return made;
  }

  void tell_state(const SweptGroup& group,
                  const ResizeRequest& request,
                  SeenRequest& seen,
                  bool is_new) {
    const bool was_active =
        is_new || ResizeRequest{.name = {}, .group = {}, .state = seen.state}.is_active();
    seen.state = request.state;
    seen.job = request_job(request);
    seen.nodes = fold_hostlist(request.nodes);
    seen.n = request.nodes.size();
    known_.is_changed = true;
    if (!was_active) return;
    switch (request.state) {
      case RequestState::Accepted:
        add_request("queued", group, request);
        break;
      case RequestState::Succeeded:
        add_request("succeeded", group, request);
        break;
      case RequestState::Failed:
        add_failed(group, request);
        break;
      case RequestState::Cancelled:
        add_request("cancelled", group, request);
        break;
      case RequestState::Deleting:
        if (!is_new) add_request("cancelled", group, request).why = "it was deleted";
        break;
      case RequestState::Creating:
      case RequestState::Provisioning:
      case RequestState::Unknown:
        break;
    }
  }

  Event& add_request(std::string_view what, const SweptGroup& group, const ResizeRequest& request) {
    Event made = request_event(what, group, request);
    if (request.created != TimePoint{}) {
      made.more["created"] = format_time(request.created);
      made.more["waited_s"] = std::to_string((shot_.now - request.created).count());
    }
    made.more["attempt"] = std::to_string(request_attempt(request));
    return events_.emplace_back(std::move(made));
  }

  void add_failed(const SweptGroup& group, const ResizeRequest& request) {
    Event& made = add_request("failed", group, request);
    if (!request.error) return;
    made.more["code"] = request.error->code;
    made.more["message"] = request.error->message;
  }

  void tell_attempt(const SweptGroup& group, const ResizeRequest& request, SeenRequest& seen) {
    if (!request.last_attempt) return;
    const ProviderError& last = *request.last_attempt;
    const std::string message(beginning_of(last.message, kMostMessage));
    const bool is_other = seen.code != last.code || seen.told == TimePoint{};
    const bool is_reworded =
        seen.message != message || seen.estimate != last.estimated_availability;
    const bool is_due = shot_.now - seen.told >= kAttemptPause;
    if (!is_other && (!is_reworded || !is_due)) return;
    seen.code = last.code;
    seen.message = message;
    seen.estimate = last.estimated_availability;
    seen.told = shot_.now;
    known_.is_changed = true;
    Event made = request_event("attempt", group, request);
    made.more["code"] = last.code;
    made.more["message"] = message;
    if (last.estimated_availability)
      made.more["estimate"] = format_time(*last.estimated_availability);
    events_.push_back(std::move(made));
  }

  /// One that still waited was deleted by somebody.
  void tell_unlisted(const std::string& key, const SeenRequest& seen, std::vector<Event>& to) {
    if (!ResizeRequest{.name = {}, .group = {}, .state = seen.state}.is_active()) return;
    Event made = event("cancelled");
    const std::size_t slash = key.find('/');
    made.group = key.substr(0, slash);
    made.request = key.substr(slash + 1);
    made.job = seen.job;
    made.nodes = seen.nodes;
    made.n = seen.n;
    made.why = "it is no longer listed";
    to.push_back(std::move(made));
  }

  /// What is no longer listed.
  void forget_requests() {
    for (auto at = known_.requests.begin(); at != known_.requests.end();) {
      const auto& [key, seen] = *at;
      if (seen.round == known_.round || is_full()) {
        ++at;
        continue;
      }
      tell_unlisted(key, seen, events_);
      at = known_.requests.erase(at);
      known_.is_changed = true;
    }
  }

  // ---- VMs ----

  void look_at_vms(const SweptGroup& group) {
    const auto bringers = bringers_of(group);
    for (const Instance& instance : group.instances) {
      if (!is_there(instance)) continue;
      const std::string key = key_of(group.group.name.text, instance.name.text);
      auto found = known_.vms.find(key);
      // Another VM of the same name: the one before is gone.
      if (found != known_.vms.end() && found->second.id != instance.id) {
        if (is_full()) continue;
        tell_gone(key, found->second, true);
        known_.vms.erase(found);
        found = known_.vms.end();
      }
      if (found == known_.vms.end() && is_up(instance) && !is_full()) {
        found = known_.vms.emplace(key, first_sight(group, instance, bringers)).first;
        add_vm("vm_up", key, found->second, zone_of(instance.url), "");
      }
      if (found == known_.vms.end()) continue;
      SeenVm& seen = found->second;
      seen.round = known_.round;
      if (instance.terminates && seen.ends != *instance.terminates) {
        seen.ends = *instance.terminates;
        known_.is_changed = true;
      }
      if (!seen.is_registered && is_registered(instance.name) && !is_full()) {
        seen.is_registered = known_.is_changed = true;
        Event& made = add_vm("registered", key, seen, "", "");
        made.more["boot_s"] = std::to_string((shot_.now - seen.since).count());
      }
    }
  }

  SeenVm first_sight(const SweptGroup& group,
                     const Instance& instance,
                     const std::unordered_map<NodeName, const ResizeRequest*>& bringers) {
    known_.is_changed = true;
    SeenVm seen{.id = instance.id, .nodeset = group.nodeset, .since = shot_.now};
    seen.ends = instance.terminates.value_or(TimePoint{});
    const auto bringer = bringers.find(instance.name);
    if (bringer != bringers.end()) {
      seen.request = bringer->second->name.text;
      seen.job = request_job(*bringer->second);
    } else {
      seen.job = described_number(instance.description, "job");
    }
    return seen;
  }

  [[nodiscard]] bool is_registered(const NodeName& name) const {
    const auto node = nodes_.find(name);
    return node != nodes_.end() && flex::is_up(*node->second) && !is_not_responding(*node->second);
  }

  /// The node's part of the event that tells of all VMs of the same request or job.
  Event& add_vm(std::string_view what,
                const std::string& key,
                const SeenVm& seen,
                std::string_view zone,
                const std::string& ended) {
    const std::size_t slash = key.rfind('/');
    const std::string group = key.substr(0, slash);
    // VMs of bulkInsert have no request: the job tells them apart.
    Fold& fold =
        folds_[{std::string(what), group, seen.request, std::string(zone), ended, seen.job}];
    fold.nodes.push_back({key.substr(slash + 1)});
    Event& made = fold.event;
    if (fold.nodes.size() == 1) {
      made = event(what);
      made.nodeset = seen.nodeset;
      made.group = group;
      made.request = seen.request;
      made.job = seen.job;
    }
    if (!zone.empty()) made.more["zone"] = zone;
    if (!ended.empty()) made.more["ended"] = ended;
    note_end(made, seen.ends);
    return made;
  }

  /// The end of the first of them.
  static void note_end(Event& made, TimePoint ends) {
    if (ends == TimePoint{}) return;
    const std::string text = format_time(ends);
    std::string& known = made.more["ends"];
    if (known.empty() || text < known) known = text;
  }

  void tell_gone(const std::string& key, const SeenVm& seen, bool is_replaced) {
    known_.is_changed = true;
    add_vm("vm_gone", key, seen, "", why_gone(key, seen, is_replaced));
  }

  [[nodiscard]] std::string why_gone(const std::string& key,
                                     const SeenVm& seen,
                                     bool is_replaced) const {
    if (seen.ends != TimePoint{} && shot_.now >= seen.ends) return "lease_end";
    if (seen.is_deleted) return "deleted";
    const auto node = nodes_.find({key.substr(key.rfind('/') + 1)});
    // Slurm has sent it away, which flex-suspend may have done without telling.
    const bool is_off =
        node != nodes_.end() && (is_powering_down(*node->second) || is_powered_down(*node->second));
    return is_off && !is_replaced ? "deleted" : "lost";
  }

  void end_vms() {
    for (auto at = known_.vms.begin(); at != known_.vms.end();) {
      if (at->second.round == known_.round || is_full()) {
        ++at;
        continue;
      }
      tell_gone(at->first, at->second, false);
      at = known_.vms.erase(at);
    }
  }

  // ---- jobs ----

  void look_at_jobs() {
    for (const Job& job : shot_.jobs.items) {
      if (!job.holds_nodes()) continue;
      auto found = known_.jobs.find(job.id);
      if (found == known_.jobs.end()) {
        if (is_full()) continue;
        std::optional<SeenJob> seen = first_sight(job);
        if (!seen) continue;
        found = known_.jobs.emplace(job.id, *std::move(seen)).first;
      }
      SeenJob& seen = found->second;
      seen.round = known_.round;
      if (seen.restart_count != job.restart_count && !is_full()) {
        add_ended(job.id, seen, "REQUEUED");
        std::optional<SeenJob> again = first_sight(job);
        if (!again) {
          // On others' nodes this time.
          known_.jobs.erase(found);
          known_.is_changed = true;
          continue;
        }
        seen = *std::move(again);
        seen.round = known_.round;
      }
      if (seen.has_started || job.is_configuring || !job.is_running || is_full()) continue;
      seen.has_started = known_.is_changed = true;
      events_.push_back(job_event("job_started", job.id, seen));
    }
  }

  /// Nothing for a job that has no nodes of ours.
  std::optional<SeenJob> first_sight(const Job& job) {
    std::vector<NodeName> nodes;
    std::string nodeset;
    for (const NodeName& node : job.nodes) {
      const Config::Place* const place = config_.find(node);
      if (place == nullptr) continue;
      if (nodes.empty()) nodeset = config_.nodesets[place->nodeset].name;
      nodes.push_back(node);
    }
    if (nodes.empty()) return std::nullopt;
    known_.is_changed = true;
    return SeenJob{.nodeset = nodeset,
                   .nodes = fold_hostlist(nodes),
                   .n = nodes.size(),
                   .restart_count = job.restart_count};
  }

  [[nodiscard]] Event job_event(std::string_view what, JobId id, const SeenJob& seen) const {
    Event made = event(what);
    made.job = id;
    made.nodeset = seen.nodeset;
    made.nodes = seen.nodes;
    made.n = seen.n;
    return made;
  }

  void add_ended(JobId id, const SeenJob& seen, std::string_view state) {
    Event made = job_event("job_ended", id, seen);
    made.more["state"] = state;
    if (!seen.has_started) made.more["started"] = "no";
    known_.is_changed = true;
    events_.push_back(std::move(made));
  }

  /// A job that began and ended between two looks.
  static bool has_run(std::string_view state) {
    return state == "COMPLETED" || state == "FAILED" || state == "TIMEOUT" ||
           state == "OUT_OF_MEMORY";
  }

  void end_jobs() {
    std::unordered_map<JobId, const Job*> jobs;
    for (const Job& job : shot_.jobs.items) jobs[job.id] = &job;
    for (auto at = known_.jobs.begin(); at != known_.jobs.end();) {
      if (at->second.round == known_.round || is_full()) {
        ++at;
        continue;
      }
      const auto job = jobs.find(at->first);
      const bool is_requeued = job != jobs.end() && job->second->is_pending;
      const std::string_view state =
          job == jobs.end() ? "" : (is_requeued ? "REQUEUED" : job_state_text(*job->second));
      if (!at->second.has_started && has_run(state)) {
        at->second.has_started = true;
        events_.push_back(job_event("job_started", at->first, at->second));
      }
      add_ended(at->first, at->second, state);
      at = known_.jobs.erase(at);
    }
  }

  const Config& config_;
  const Snapshot& shot_;
  Chronicle& known_;
  std::size_t most_;
  std::unordered_map<NodeName, const Node*> nodes_{};
  std::vector<Event> replaced_{};  ///< of requests whose name another has now: they come first
  std::vector<Event> events_{};
  std::map<FoldKey, Fold> folds_{};
};

}  // namespace

std::vector<Event> chronicle(const Config& config,
                             const Snapshot& shot,
                             Chronicle& known,
                             std::size_t most) {
  return Chronicler{config, shot, known, most}.run();
}

void learn(Chronicle& known, const Event& event) {
  const auto result = event.more.find("result");
  const bool is_done = result != event.more.end() && result->second == "ok";
  if (event.what != "delete_instances" || !is_done) return;
  const auto nodes = expand_hostlist(event.nodes);
  if (!nodes) return;
  for (const NodeName& node : *nodes) {
    const auto found = known.vms.find(key_of(event.group, node.text));
    if (found == known.vms.end() || found->second.is_deleted) continue;
    found->second.is_deleted = known.is_changed = true;
  }
}

}  // namespace flex
