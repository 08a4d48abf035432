// SPDX-License-Identifier: GPL-2.0-or-later
// Who wants which of the nodes that slurmctld asked us to bring up (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "resume/request.h"

#include <optional>
#include <span>
#include <vector>

namespace flex {

struct Demand {
  struct JobNodes {
    Job job{};
    std::vector<NodeName>
        nodes{};  ///< to bring up for this job; each node is in one job's list only
  };

  std::vector<JobNodes> jobs{};
  std::vector<NodeName> jobless{};  ///< powered up by an admin, or static
  std::vector<NodeName>
      unwanted{};  ///< the job that they were for is gone, and nobody else is on them
  std::vector<NodeName> foreign{};  ///< in no nodeset of ours
};

struct DemandInput {
  const Config& config;
  std::span<const NodeName> nodes;  ///< the program's argument
  const ResumeRequest* request;     ///< null: no resume file, or one that could not be read
  /// What slurmctld knows of the jobs; null: it did not answer, and the resume file is all there
  /// is.
  const std::vector<Job>* jobs;
};

/// A node goes to the job on it that runs longest (so that the VM outlives all of them). A job
/// counts if slurmctld says that it is allocated and that the node is one of its nodes, whether or
/// not the resume file names it.
[[nodiscard]] Demand resolve_demand(const DemandInput& input);

/// True if the jobs in `request` cover all nodes, so that asking slurmctld for those jobs is
/// enough.
[[nodiscard]] bool covers(const ResumeRequest& request,
                          std::span<const NodeName> nodes,
                          std::span<const Job> jobs);

}  // namespace flex
