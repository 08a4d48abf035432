// SPDX-License-Identifier: GPL-2.0-or-later
// A plan before the admission: what of it may be asked for now, and what is left for later (pure).
// A job is asked for as a whole: all of its requests, in all nodesets, or none.
#pragma once

#include "lib/config/config.h"
#include "lib/provision/admission.h"
#include "lib/provision/asked_nodes.h"
#include "resume/apply.h"
#include "resume/demand.h"
#include "resume/plan.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace flex {

/// The jobs that slurmctld starts together: the parts of a heterogeneous job begin when all of them
/// have their nodes. By the leader's id.
[[nodiscard]] JobId leader_of(const Job& job);

/// All that is asked for together.
struct AskSet {
  PendingAsk ask{};
  std::vector<JobId> jobs{};      ///< none: nodes without a job
  std::vector<NodeName> nodes{};  ///< of its requests, each once
  std::string refused{};          ///< the planner refused a part of it: why
};

/// What the plan asks for: a set for each job, with the parts of a heterogeneous job in one, and
/// for each request without a job. They wait since their job began to; others since `now`.
[[nodiscard]] std::vector<AskSet> sets_of(const Config& config,
                                          const Demand& demand,
                                          const ResumePlan& plan,
                                          TimePoint now);

/// Adds the nodes to those that count for max_nodes.
void add_nodes(PendingAsk& ask, const Config& config, const std::vector<NodeName>& nodes);
/// Adds what the job has in nodesets with max_nodes.
void add_whole(PendingAsk& ask, const Config& config, const Job& job);

/// What is not asked for now.
struct LeftAsk {
  JobId job = 0;
  std::vector<NodeName> nodes{};
  std::string why{};
};

/// Takes what is not admitted out of the plan. What can never be admitted becomes a refusal.
[[nodiscard]] std::vector<LeftAsk> admit_plan(const Config& config,
                                              const Demand& demand,
                                              const AdmissionLimits& limits,
                                              TimePoint now,
                                              ResumePlan& plan);

/// The same by the room in nodesets alone. What has to wait becomes a refusal, too, that waits for
/// its turn.
void keep_to_max_nodes(const Config& config,
                       const Demand& demand,
                       std::map<std::size_t, NodesetRoom> rooms,
                       TimePoint now,
                       ResumePlan& plan);

/// Takes all that needs room in a nodeset with max_nodes out of the plan.
[[nodiscard]] std::vector<LeftAsk> leave_limited(const Config& config,
                                                 const Demand& demand,
                                                 const std::string& why,
                                                 ResumePlan& plan);

/// The plan's nodes in nodesets with max_nodes.
[[nodiscard]] std::vector<NodeName> limited_nodes(const Config& config, const ResumePlan& plan);

/// Takes all that is for this nodeset out of the plan, with the rest of the same jobs; the nodes.
[[nodiscard]] std::vector<NodeName> leave_nodeset(const Demand& demand,
                                                  const std::string& nodeset,
                                                  ResumePlan& plan);

/// Requests that were taken although others of the same set were refused for want of room: a part
/// of a job is of no use. A node that has another request lacks none.
[[nodiscard]] std::vector<PlannedCancel> find_parts(const Demand& demand,
                                                    const std::vector<RequestOutcome>& outcomes);

/// What the programs that look at the same time have to know of it.
[[nodiscard]] AskedFile::Answers answers_of(const std::vector<RequestOutcome>& outcomes);

}  // namespace flex
