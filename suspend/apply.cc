// SPDX-License-Identifier: GPL-2.0-or-later
#include "suspend/apply.h"

#include "lib/gce/errors.h"

#include <utility>

namespace flex {

namespace {

std::vector<NodeName> names_of(const std::vector<Instance>& instances) {
  std::vector<NodeName> names;
  names.reserve(instances.size());
  for (const Instance& instance : instances) names.push_back(instance.name);
  return names;
}

/// The write's answer with an error that the operation already had when it came.
Result<Operation> settled(Result<Operation> got) {
  if (got && got->is_done && got->error) return to_error(*got->error);
  return got;
}

void note_failure(SuspendOutcome& outcome,
                  const MigName& group,
                  std::vector<NodeName> nodes,
                  Error error) {
  if (error.kind == ErrorKind::Precondition) {
    outcome.again.insert(outcome.again.end(), nodes.begin(), nodes.end());
    return;
  }
  outcome.failed.push_back({.group = group, .nodes = std::move(nodes), .error = std::move(error)});
}

}  // namespace

SuspendOutcome apply_suspend(Cloud& cloud, const SuspendPlan& plan) {
  SuspendOutcome outcome;
  outcome.again = plan.unclear;
  for (const PlannedDeletion& deletion : plan.deletions) {
    cloud.delete_instances(deletion.group, deletion.instances, [&](Result<Operation> reply) {
      Result<Operation> got = settled(std::move(reply));
      if (got || got.error().kind == ErrorKind::NotFound) {
        outcome.deleted.push_back(deletion);
      } else {
        note_failure(outcome, deletion.group, names_of(deletion.instances), std::move(got).error());
      }
    });
  }
  for (const PlannedCancel& cancel : plan.cancels) {
    cloud.cancel_request(cancel.group, cancel.request, [&](Result<Operation> reply) {
      Result<Operation> got = settled(std::move(reply));
      if (got || got.error().kind == ErrorKind::NotFound) {
        outcome.cancelled.push_back(cancel);
      } else {
        note_failure(outcome, cancel.group, cancel.nodes, std::move(got).error());
      }
    });
  }
  cloud.run();
  return outcome;
}

}  // namespace flex
