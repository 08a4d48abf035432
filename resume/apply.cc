// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unordered_set>

namespace flex {

namespace {

/// One group's chain of calls: create, clear dead entries, wait for names, ask. Each step starts
/// the next from its answer.
class GroupRun : public std::enable_shared_from_this<GroupRun> {
 public:
  GroupRun(Cloud& cloud,
           const GroupPlan& plan,
           const NameWait& wait,
           std::vector<RequestOutcome>& outcomes)
      : cloud_(cloud), plan_(plan), wait_(wait), outcomes_(outcomes) {}

  void start() {
    if (plan_.exists) return clear_dead();
    cloud_.insert_group(plan_.spec, [self = shared_from_this()](Result<Operation> got) {
      if (got) return self->await_group(*got);
      if (got.error().kind == ErrorKind::AlreadyExists) return self->check_owner();
      self->fail_all(got.error());
    });
  }

 private:
  void await_group(const Operation& operation) {
    cloud_.wait_operation(operation, [self = shared_from_this()](Result<Done> got) {
      if (got) return self->clear_dead();
      self->fail_all(got.error());
    });
  }

  /// Another flex-resume was faster, or somebody else has the name.
  void check_owner() {
    is_contested_ = true;
    cloud_.fetch_group(plan_.spec.name, [self = shared_from_this()](Result<Group> got) {
      if (!got)
        return self->fail_all(got.error().in("reading the group that another process created"));
      if (got->description == self->plan_.spec.description) return self->clear_dead();
      self->fail_all({ErrorKind::Invalid,
                      fmt::format("group {} exists but is not ours", got->name),
                      "FOREIGN_GROUP"});
    });
  }

  void clear_dead() {
    if (plan_.dead.empty()) return await_names(plan_.awaited.begin(), 0);
    cloud_.delete_instances(
        plan_.spec.name, plan_.dead, [self = shared_from_this()](Result<Operation> got) {
          if (!got) return self->fail_all(got.error().in("clearing entries without a VM"));
          self->cloud_.wait_operation(*got, [self](Result<Done> done) {
            if (!done) return self->fail_all(done.error().in("clearing entries without a VM"));
            self->await_names(self->plan_.awaited.begin(), 0);
          });
        });
  }

  using Awaited = std::map<MigName, std::vector<NodeName>>::const_iterator;

  void await_names(Awaited next, int tries) {
    if (next == plan_.awaited.end()) return ask();
    cloud_.fetch_instances(
        next->first, [self = shared_from_this(), next, tries](Result<std::vector<Instance>> got) {
          const bool is_gone = !got && got.error().kind == ErrorKind::NotFound;
          if (!got && !is_gone)
            return self->fail_all(got.error().in("waiting for names to become free"));
          if (is_gone || are_free(next->second, *got))
            return self->await_names(std::next(next), tries);
          if (tries >= self->wait_.limit) {
            return self->fail_all(
                {ErrorKind::Retry,
                 "VMs of these names are still being deleted; the sweeper asks again",
                 "NAME_IN_USE"});
          }
          self->cloud_.after(self->wait_.poll,
                             [self, next, tries] { self->await_names(next, tries + 1); });
        });
  }

  static bool are_free(const std::vector<NodeName>& wanted, const std::vector<Instance>& entries) {
    const std::unordered_set<NodeName> names(wanted.begin(), wanted.end());
    return std::none_of(entries.begin(), entries.end(), [&](const Instance& entry) {
      return names.count(entry.name) > 0;
    });
  }

  void ask() {
    for (const PlannedRequest& request : plan_.requests) ask_for(request, 0);
  }

  void ask_for(const PlannedRequest& request, int tries) {
    cloud_.insert_request(
        request.spec, [self = shared_from_this(), &request, tries](Result<Operation> got) {
          if (got) return self->note(request, RequestResult::Requested, {});
          const ErrorKind kind = got.error().kind;
          if (kind == ErrorKind::AlreadyExists)
            return self->note(request, RequestResult::Existing, {});
          // The group that another process is just creating may not be ready, or not yet be there.
          const bool is_early = kind == ErrorKind::Precondition ||
                                (kind == ErrorKind::NotFound && self->is_contested_);
          if (!is_early || tries >= self->wait_.limit)
            return self->note(request, RequestResult::Failed, got.error());
          self->cloud_.after(self->wait_.poll,
                             [self, &request, tries] { self->ask_for(request, tries + 1); });
        });
  }

  void fail_all(const Error& error) {
    for (const PlannedRequest& request : plan_.requests)
      note(request, RequestResult::Failed, error);
  }

  void note(const PlannedRequest& request, RequestResult result, Error error) {
    outcomes_.push_back({.request = request, .result = result, .error = std::move(error)});
  }

  Cloud& cloud_;
  const GroupPlan& plan_;
  const NameWait& wait_;
  std::vector<RequestOutcome>& outcomes_;
  bool is_contested_ =
      false;  ///< another process created the group between our look and our insert
};

}  // namespace

std::vector<RequestOutcome> apply_to_cloud(Cloud& cloud,
                                           const ResumePlan& plan,
                                           const NameWait& wait) {
  std::vector<RequestOutcome> outcomes;
  for (const GroupPlan& group : plan.groups)
    std::make_shared<GroupRun>(cloud, group, wait, outcomes)->start();
  cloud.run();
  return outcomes;
}

bool is_permanent(const Error& error) {
  return error.kind == ErrorKind::Denied || error.kind == ErrorKind::Invalid;
}

}  // namespace flex
