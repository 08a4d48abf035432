// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/apply.h"

#include "lib/fleet/groups.h"
#include "lib/fleet/queue.h"
#include "lib/gce/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// The entries of a group; without a name: the VMs that are in none.
void fetch_entries(Cloud& cloud,
                   const std::string& cluster,
                   const MigName& group,
                   Then<std::vector<Instance>> then) {
  if (group.empty())
    cloud.fetch_loose_instances(cluster, {}, std::move(then));
  else
    cloud.fetch_instances(group, std::move(then));
}

bool are_free(const std::vector<NodeName>& wanted, const std::vector<Instance>& entries) {
  const std::unordered_set<NodeName> names(wanted.begin(), wanted.end());
  return std::none_of(entries.begin(), entries.end(), [&](const Instance& entry) {
    return names.contains(entry.name);
  });
}

/// Waits for names of one group to become free, on behalf of all requests that need some: one list
/// at a time, however many they are.
class NameWatch : public std::enable_shared_from_this<NameWatch> {
 public:
  /// True: they are free. False: they are not, and nobody waits any longer.
  using Answer = std::function<void(const Result<bool>&)>;

  NameWatch(Cloud& cloud, const std::string& cluster, const NameWait& wait, MigName group)
      : cloud_(cloud), cluster_(cluster), wait_(wait), group_(std::move(group)) {}

  void add(const std::vector<NodeName>& names, Answer then) {
    waiters_.push_back({.names = names, .then = std::move(then)});
    if (!std::exchange(is_looking_, true)) look();
  }

 private:
  struct Waiter {
    std::vector<NodeName> names{};
    Answer then{};
    int tries = 0;
  };

  void look() {
    fetch_entries(
        cloud_,
        cluster_,
        group_,
        [self = shared_from_this()](const Result<std::vector<Instance>>& got) { self->tell(got); });
  }

  void tell(const Result<std::vector<Instance>>& got) {
    std::vector<Waiter> all = std::exchange(waiters_, {});
    is_looking_ = false;
    const bool is_gone = !got && got.error().kind == ErrorKind::NotFound;
    for (Waiter& waiter : all) {
      if (!got && !is_gone) {
        waiter.then(got.error());
      } else if (is_gone || are_free(waiter.names, *got)) {
        waiter.then(true);
      } else if (waiter.tries >= wait_.limit) {
        waiter.then(false);
      } else {
        ++waiter.tries;
        waiters_.push_back(std::move(waiter));
      }
    }
    // Whoever was told may have come back with other names.
    if (waiters_.empty() || std::exchange(is_looking_, true)) return;
    cloud_.after(wait_.poll, [self = shared_from_this()] { self->look(); });
  }

  Cloud& cloud_;
  const std::string& cluster_;
  const NameWait& wait_;
  MigName group_;
  std::vector<Waiter> waiters_{};
  bool is_looking_ = false;  ///< or about to
};

/// What the runs of one call share.
struct Context {
  Cloud& cloud;
  const std::string& cluster;
  const NameWait& wait;
  const StillWanted& is_wanted;
  std::vector<RequestOutcome>& outcomes;
  std::map<MigName, std::shared_ptr<NameWatch>> watches{};

  void note(const PlannedRequest& request, RequestResult result, Error error) {
    outcomes.push_back({.request = request, .result = result, .error = std::move(error)});
  }

  NameWatch& watch(const MigName& group) {
    std::shared_ptr<NameWatch>& found = watches[group];
    if (!found) found = std::make_shared<NameWatch>(cloud, cluster, wait, group);
    return *found;
  }
};

/// One request's chain of calls: clear dead entries, wait for names, ask. Each step starts the next
/// from its answer; a request that has to wait holds up no other.
class RequestRun : public std::enable_shared_from_this<RequestRun> {
 public:
  /// `is_contested`: another process has just created the group, which may not be ready.
  /// `has_waited`: the group had to be waited for.
  RequestRun(
      Context& context, PlannedRequest plan, GroupKind kind, bool is_contested, bool has_waited)
      : context_(context),
        plan_(std::move(plan)),
        kind_(kind),
        is_contested_(is_contested),
        has_waited_(has_waited) {}

  void start() { clear(plan_.dead.begin()); }

 private:
  using Awaited = std::map<MigName, std::vector<NodeName>>::const_iterator;
  using Dead = std::map<MigName, std::vector<Instance>>::const_iterator;

  /// Entries without a VM, group by group.
  void clear(Dead next) {
    if (next == plan_.dead.end()) return await_names(plan_.awaited.begin());
    has_waited_ = true;
    context_.cloud.delete_instances(
        next->first, next->second, [self = shared_from_this(), next](Result<Operation> got) {
          const bool is_gone = !got && got.error().kind == ErrorKind::NotFound;
          if (is_gone) return self->clear(std::next(next));
          if (!got) return self->fail(got.error().in("clearing entries without a VM"));
          self->context_.cloud.wait_operation(*got, [self, next](Result<Done> done) {
            if (!done) return self->fail(done.error().in("clearing entries without a VM"));
            self->clear(std::next(next));
          });
        });
  }

  void await_names(Awaited next) {
    if (next == plan_.awaited.end()) return ask();
    context_.watch(next->first)
        .add(next->second, [self = shared_from_this(), next](const Result<bool>& got) {
          self->has_waited_ = true;
          if (!got) return self->fail(got.error().in("waiting for names to become free"));
          if (*got) return self->await_names(std::next(next));
          self->fail({ErrorKind::Retry,
                      "VMs of these names are still being deleted; the sweeper asks again",
                      "NAME_IN_USE"});
        });
  }

  void wait(std::function<void()> then) {
    has_waited_ = true;
    context_.cloud.after(context_.wait.poll, std::move(then));
  }

  /// False if nobody wants it any more, which is noted.
  bool is_wanted() {
    if (!has_waited_ || !context_.is_wanted || context_.is_wanted(plan_)) return true;
    context_.note(plan_, RequestResult::Unwanted, {});
    return false;
  }

  void ask() {
    switch (kind_) {
      case GroupKind::Queued:
        return ask(0);
      case GroupKind::Individual:
        return create(0);
      case GroupKind::Loose:
        return insert_bulk();
    }
  }

  void ask(int tries) {
    if (!is_wanted()) return;
    context_.cloud.insert_request(plan_.spec,
                                  [self = shared_from_this(), tries](Result<Operation> got) {
                                    if (got && got->is_done && got->error)
                                      return self->fail(to_error(*got->error));
                                    if (got) return self->accepted(*got);
                                    if (got.error().kind == ErrorKind::AlreadyExists)
                                      return self->check_existing(got.error());
                                    if (!self->may_pass(got.error(), tries))
                                      return self->fail(got.error());
                                    self->wait([self, tries] { self->ask(tries + 1); });
                                  });
  }

  void accepted(const Operation& operation) {
    if (!context_.wait.settle || operation.is_done)
      return context_.note(plan_, RequestResult::Requested, {});
    context_.cloud.wait_operation(operation, [self = shared_from_this()](const Result<Done>& got) {
      // No word in time is no refusal: the next look shows whether the request is there.
      if (got || got.error().kind == ErrorKind::Retry)
        return self->context_.note(self->plan_, RequestResult::Requested, {});
      self->fail(got.error());
    });
  }

  // ---- VMs that come one by one ----

  void create(int tries) {
    if (!is_wanted()) return;
    context_.cloud.create_instances(
        plan_.spec.group,
        plan_.spec.nodes,
        [self = shared_from_this(), tries](const Result<Operation>& got) {
          const Error error = got ? (got->error ? to_error(*got->error) : Error{}) : got.error();
          if (got && !got->error) return self->accepted(*got);
          // A name that is in use is refused under either.
          if (error.kind == ErrorKind::AlreadyExists || error.kind == ErrorKind::Precondition)
            return self->create_missing(error, tries);
          if (!self->may_pass(error, tries)) return self->fail(error);
          self->create_later(tries);
        });
  }

  void create_later(int tries) {
    wait([self = shared_from_this(), tries] { self->create(tries + 1); });
  }

  /// Somebody has asked for some of them: ask for the others. If for none, a moment may mend it.
  void create_missing(const Error& taken, int tries) {
    fetch_entries(
        context_.cloud,
        context_.cluster,
        plan_.spec.group,
        [self = shared_from_this(), taken, tries](const Result<std::vector<Instance>>& got) {
          if (!got) return self->fail(got.error().in("looking at VMs of the same names"));
          const std::vector<NodeName> missing = missing_of(self->plan_.spec.nodes, *got);
          if (missing.empty()) return self->context_.note(self->plan_, RequestResult::Existing, {});
          if (missing.size() < self->plan_.spec.nodes.size()) {
            self->plan_.spec.nodes = missing;
            return self->create(0);
          }
          if (tries < self->context_.wait.limit) return self->create_later(tries);
          self->fail({ErrorKind::Retry, taken.what, "NAME_IN_USE"});
        });
  }

  static std::vector<NodeName> missing_of(const std::vector<NodeName>& wanted,
                                          const std::vector<Instance>& entries) {
    std::unordered_set<NodeName> live;
    for (const Instance& entry : entries) {
      if (!entry.is_dead() && !entry.is_leaving()) live.insert(entry.name);
    }
    std::vector<NodeName> missing;
    std::copy_if(
        wanted.begin(), wanted.end(), std::back_inserter(missing), [&](const NodeName& node) {
          return !live.contains(node);
        });
    return missing;
  }

  // ---- VMs without a group ----

  /// Nothing but its operation says what becomes of it, so that is waited for.
  void insert_bulk() {
    if (!is_wanted()) return;
    context_.cloud.bulk_insert(
        plan_.bulk, [self = shared_from_this()](const Result<Operation>& got) {
          if (!got) return self->settle_bulk(got.error());
          self->context_.cloud.wait_operation(*got, [self](const Result<Done>& done) {
            if (done) return self->context_.note(self->plan_, RequestResult::Requested, {});
            self->settle_bulk(done.error());
          });
        });
  }

  /// Some of the VMs may be there all the same: those are as they should be.
  void settle_bulk(const Error& error) {
    fetch_entries(context_.cloud,
                  context_.cluster,
                  {},
                  [self = shared_from_this(), error](const Result<std::vector<Instance>>& got) {
                    if (!got) return self->fail(error);
                    const std::vector<NodeName> missing = missing_of(self->plan_.spec.nodes, *got);
                    if (missing.size() < self->plan_.spec.nodes.size()) {
                      PlannedRequest there = self->plan_;
                      std::erase_if(there.spec.nodes, [&](const NodeName& node) {
                        return std::find(missing.begin(), missing.end(), node) != missing.end();
                      });
                      self->context_.note(there, RequestResult::Existing, {});
                    }
                    if (missing.empty()) return;
                    self->plan_.spec.nodes = missing;
                    self->fail(error);
                  });
  }

  /// Refusals that a moment may mend: a group that is not ready, a name that is just going, a quota
  /// that others are about to free. For that of active requests others may be waiting already: the
  /// sweeper asks when the turn has come.
  [[nodiscard]] bool may_pass(const Error& error, int tries) const {
    constexpr int kQuotaTries = 3;
    if (is_active_requests_quota(error)) return false;
    if (error.kind == ErrorKind::Quota) return tries < kQuotaTries;
    const bool is_early = error.kind == ErrorKind::Precondition ||
                          (error.kind == ErrorKind::NotFound && is_contested_);
    return is_early && tries < context_.wait.limit;
  }

  /// The name is taken. By an active request, or one that has been served: somebody asked for
  /// exactly this. By one that failed or was cancelled since our look: the next attempt's name is
  /// free.
  void check_existing(const Error& taken) {
    context_.cloud.fetch_requests(
        plan_.spec.group,
        [self = shared_from_this(), taken](const Result<std::vector<ResizeRequest>>& got) {
          if (!got) return self->fail(got.error().in("looking at the request of the same name"));
          const auto found = std::find_if(got->begin(), got->end(), [&](const ResizeRequest& r) {
            return r.name == self->plan_.spec.name;
          });
          if (found == got->end()) {
            return self->fail({ErrorKind::Retry, taken.what, "NAME_IN_USE"});
          }
          if (found->is_active())
            return self->context_.note(self->plan_, RequestResult::Existing, {});
          if (found->state == RequestState::Succeeded) return self->check_served(*got);
          self->ask_under_next_name(*got);
        });
  }

  /// Served since our look: that is what we wanted, if its VMs are still there.
  void check_served(const std::vector<ResizeRequest>& taken) {
    context_.cloud.fetch_instances(
        plan_.spec.group,
        [self = shared_from_this(), taken](const Result<std::vector<Instance>>& got) {
          if (!got) return self->fail(got.error().in("looking at the VMs of the same request"));
          if (missing_of(self->plan_.spec.nodes, *got).empty())
            return self->context_.note(self->plan_, RequestResult::Existing, {});
          self->ask_under_next_name(taken);
        });
  }

  /// What was asked for has come to its end, perhaps with the job.
  void ask_under_next_name(const std::vector<ResizeRequest>& taken) {
    has_waited_ = true;
    RequestKey& key = plan_.key;
    next_free_attempt(key, taken);
    plan_.spec.name = request_name(key);
    plan_.way.attempt = key.attempt;
    plan_.spec.description = request_description(key.job, key.nodes, plan_.way);
    ask(0);
  }

  void fail(Error error) { context_.note(plan_, RequestResult::Failed, std::move(error)); }

  Context& context_;
  PlannedRequest plan_;
  GroupKind kind_;
  bool is_contested_;
  bool has_waited_;
};

/// A group's chain: create it where it is missing, then start its requests.
class GroupRun : public std::enable_shared_from_this<GroupRun> {
 public:
  GroupRun(Context& context, const GroupPlan& plan) : context_(context), plan_(plan) {}

  void start() {
    if (plan_.exists) return ask_all(false);
    if (!plan_.policy) return insert();
    context_.cloud.insert_policy(
        *plan_.policy, [self = shared_from_this()](const Result<Operation>& got) {
          if (!got && got.error().kind == ErrorKind::AlreadyExists) return self->insert();
          if (!got) return self->fail_all(self->creation_error(got.error()));
          self->context_.cloud.wait_operation(*got, [self](const Result<Done>& done) {
            if (!done) return self->fail_all(self->creation_error(done.error()));
            self->insert();
          });
        });
  }

 private:
  void insert() {
    context_.cloud.insert_group(plan_.spec, [self = shared_from_this()](Result<Operation> got) {
      if (got) return self->await_group(*got);
      if (got.error().kind == ErrorKind::AlreadyExists) return self->check_owner(0);
      self->fail_all(self->creation_error(got.error()));
    });
  }

  void await_group(const Operation& operation) {
    context_.cloud.wait_operation(operation, [self = shared_from_this()](Result<Done> got) {
      if (got) return self->ask_all(false);
      self->fail_all(self->creation_error(got.error()));
    });
  }

  /// "Not found" here is the project, the region or the template: nothing that waiting would mend.
  [[nodiscard]] Error creation_error(Error error) const {
    // Its policy may just have been swept up.
    if (error.kind == ErrorKind::NotFound)
      error.kind = plan_.policy ? ErrorKind::Retry : ErrorKind::Invalid;
    return error;
  }

  /// Another flex-resume was faster, or somebody else has the name.
  void check_owner(int tries) {
    context_.cloud.fetch_group(
        plan_.spec.name, [self = shared_from_this(), tries](const Result<Group>& got) {
          if (!got && got.error().kind == ErrorKind::NotFound &&
              tries < self->context_.wait.limit) {
            return self->context_.cloud.after(self->context_.wait.poll,
                                              [self, tries] { self->check_owner(tries + 1); });
          }
          if (!got)
            return self->fail_all(got.error().in("reading the group that another process created"));
          if (got->description == self->plan_.spec.description) return self->ask_all(true);
          self->fail_all({ErrorKind::Invalid,
                          fmt::format("group {} exists but is not ours", got->name),
                          "FOREIGN_GROUP"});
        });
  }

  void ask_all(bool is_contested) {
    for (const PlannedRequest& request : plan_.requests) {
      std::make_shared<RequestRun>(context_, request, plan_.spec.kind, is_contested, !plan_.exists)
          ->start();
    }
  }

  void fail_all(const Error& error) {
    for (const PlannedRequest& request : plan_.requests)
      context_.note(request, RequestResult::Failed, error);
  }

  Context& context_;
  const GroupPlan& plan_;
};

/// One request to be cancelled. One that is just being created is tried again a few times, if
/// `wait` says so.
class CancelRun : public std::enable_shared_from_this<CancelRun> {
 public:
  CancelRun(Cloud& cloud,
            PlannedCancel cancel,
            const NameWait& wait,
            std::vector<CancelOutcome>& outcomes)
      : cloud_(cloud), cancel_(std::move(cancel)), wait_(wait), outcomes_(outcomes) {}

  void start(int tries = 0) {
    cloud_.cancel_request(
        cancel_.group,
        cancel_.request,
        [self = shared_from_this(), tries](const Result<Operation>& got) {
          if (!got && got.error().kind == ErrorKind::Precondition && tries < self->wait_.limit)
            return self->cloud_.after(self->wait_.poll, [self, tries] { self->start(tries + 1); });
          if (!got && got.error().kind != ErrorKind::NotFound) return self->note(got.error());
          if (!got) return self->note(std::nullopt);
          if (got->error) return self->note(to_error(*got->error));
          if (!self->wait_.settle || got->is_done) return self->note(std::nullopt);
          self->cloud_.wait_operation(*got, [self](const Result<Done>& done) {
            self->note(done ? std::nullopt : std::optional<Error>{done.error()});
          });
        });
  }

 private:
  void note(std::optional<Error> error) {
    outcomes_.push_back({.cancel = cancel_, .error = std::move(error)});
  }

  Cloud& cloud_;
  PlannedCancel cancel_;
  NameWait wait_;
  std::vector<CancelOutcome>& outcomes_;
};

/// Each with what became of it. Runs the cloud.
std::vector<CancelOutcome> cancel_all(Cloud& cloud,
                                      const std::vector<PlannedCancel>& cancels,
                                      const NameWait& wait) {
  std::vector<CancelOutcome> outcomes;
  for (const PlannedCancel& cancel : cancels)
    std::make_shared<CancelRun>(cloud, cancel, wait, outcomes)->start();
  cloud.run();
  return outcomes;
}

}  // namespace

std::vector<CancelOutcome> cancel_first(Cloud& cloud, ResumePlan& plan, bool settle) {
  if (plan.cancels.empty()) return {};
  std::vector<CancelOutcome> outcomes =
      cancel_all(cloud, plan.cancels, {.limit = 0, .settle = settle});
  std::unordered_set<NodeName> blocked;
  for (const CancelOutcome& outcome : outcomes) {
    if (outcome.error) blocked.insert(outcome.cancel.nodes.begin(), outcome.cancel.nodes.end());
  }
  for (GroupPlan& group : plan.groups) {
    std::erase_if(group.requests, [&](const PlannedRequest& request) {
      const auto& nodes = request.spec.nodes;
      const bool is_blocked = std::any_of(
          nodes.begin(), nodes.end(), [&](const NodeName& node) { return blocked.contains(node); });
      if (is_blocked)
        plan.refusals.push_back({.job = request.job,
                                 .nodes = nodes,
                                 .error = {ErrorKind::Retry,
                                           "another request for some of its nodes could not be "
                                           "cancelled; the sweeper asks again",
                                           "OTHER_REQUEST"}});
      return is_blocked;
    });
  }
  std::erase_if(plan.groups, [](const GroupPlan& group) { return group.requests.empty(); });
  return outcomes;
}

std::vector<CancelOutcome> take_back(Cloud& cloud,
                                     const std::vector<PlannedCancel>& parts,
                                     std::vector<RequestOutcome>& outcomes) {
  if (parts.empty()) return {};
  constexpr NameWait kWait{.poll = std::chrono::milliseconds{500}, .limit = 20};
  std::vector<CancelOutcome> done = cancel_all(cloud, parts, kWait);
  for (const CancelOutcome& cancelled : done) {
    if (cancelled.error) continue;
    for (RequestOutcome& outcome : outcomes) {
      if (outcome.request.spec.group != cancelled.cancel.group ||
          outcome.request.spec.name != cancelled.cancel.request)
        continue;
      outcome.result = RequestResult::Failed;
      outcome.error = {ErrorKind::Quota, cancelled.cancel.why, "QUOTA_EXCEEDED"};
    }
  }
  return done;
}

std::vector<RequestOutcome> apply_to_cloud(Cloud& cloud,
                                           const ResumePlan& plan,
                                           const NameWait& wait,
                                           const StillWanted& is_wanted) {
  std::vector<RequestOutcome> outcomes;
  Context context{.cloud = cloud,
                  .cluster = plan.cluster,
                  .wait = wait,
                  .is_wanted = is_wanted,
                  .outcomes = outcomes};
  for (const GroupPlan& group : plan.groups) std::make_shared<GroupRun>(context, group)->start();
  cloud.run();
  return outcomes;
}

void spare_asked(std::vector<RequestOutcome>& outcomes,
                 std::vector<Refusal>& refusals,
                 std::unordered_set<NodeName> asked) {
  for (const RequestOutcome& outcome : outcomes) {
    if (outcome.result == RequestResult::Requested || outcome.result == RequestResult::Existing)
      asked.insert(outcome.request.spec.nodes.begin(), outcome.request.spec.nodes.end());
  }
  const auto spare = [&](const std::vector<NodeName>& nodes, Error& error) {
    const bool is_asked = std::any_of(
        nodes.begin(), nodes.end(), [&](const NodeName& node) { return asked.contains(node); });
    if (is_asked && is_permanent(error)) error.kind = ErrorKind::NoCapacity;
  };
  for (RequestOutcome& outcome : outcomes) {
    if (outcome.result == RequestResult::Failed) spare(outcome.request.spec.nodes, outcome.error);
  }
  for (Refusal& refusal : refusals) spare(refusal.nodes, refusal.error);
}

bool is_permanent(const Error& error) {
  return error.kind == ErrorKind::Denied || error.kind == ErrorKind::Invalid;
}

}  // namespace flex
