// SPDX-License-Identifier: GPL-2.0-or-later
// Who wants which of the nodes that slurmctld asked us to bring up (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "resume/request.h"

#include <optional>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace flex {

struct Demand {
  struct JobNodes {
    Job job{};
    std::vector<NodeName>
        nodes{};           ///< to bring up for this job; each node is in one job's list only
    Seconds least_run{0};  ///< VMs live at least so long, for other jobs on the nodes
  };

  std::vector<JobNodes> jobs{};
  std::vector<NodeName> jobless{};  ///< powered up by an admin, or static
  /// Jobs that are on static nodes, which are jobless all the same: such a node is there for
  /// whoever comes, so its VM lives as long as it can and is in a request of its own.
  std::vector<JobNodes> on_static{};
  std::vector<NodeName>
      unwanted{};  ///< the job that they were for is gone, and nobody else is on them
  std::vector<NodeName> foreign{};  ///< in no nodeset of ours
  /// Groups in which a node is not asked for now, if there is another: one that has just failed
  /// there, or that an admin does not want.
  std::set<std::pair<NodeName, MigName>> shut{};
  /// All jobs that hold nodes. Where they are known, requests of jobs that are gone are given up
  /// for those that need their nodes.
  std::vector<Job> living{};
  /// Nodes of these jobs that have no VM and do not come up: slurmctld has them up (their VM has
  /// died) or takes them down. That is the sweeper's matter; no request has to name them.
  std::unordered_set<NodeName> not_coming{};
};

struct DemandInput {
  const Config& config;
  std::span<const NodeName> nodes;  ///< the program's argument
  const ResumeRequest* request;     ///< null: no resume file, or one that could not be read
  /// What slurmctld knows of the jobs; null: it did not answer, and the resume file is all there
  /// is.
  const std::vector<Job>* jobs;
};

/// A node goes to the job on it that runs longest (so that the VM outlives all of them), but a
/// static one to no job. A job counts if slurmctld says that it is allocated and that the node is
/// one of its nodes, whether or not the resume file names it.
[[nodiscard]] Demand resolve_demand(const DemandInput& input);

/// Further nodes of these jobs that may have to come up, though slurmctld did not ask for them now:
/// it has woken them before, for another job. Not static ones, and not those that another job in
/// `living` shares: whoever asks for them is up to that one.
[[nodiscard]] std::vector<NodeName> rest_of_jobs(const Config& config, const Demand& demand);

/// All nodes of these jobs that slurmctld did not ask for now, also shared ones; not static ones.
[[nodiscard]] std::vector<NodeName> others_of_jobs(const Config& config, const Demand& demand);

/// By slurmctld's word on the nodes that have no VM: those that are to come up and belong to one
/// job are part of what it lacks, the others are noted as not coming.
void note_states(const Config& config,
                 const std::vector<Node>& nodes,
                 const std::vector<NodeName>& lacking,
                 Demand& demand);

/// Puts those of the nodes into the demand of the job that holds them.
void add_rest(Demand& demand, const std::vector<NodeName>& rest);

/// True if the jobs in `request` cover all nodes, so that asking slurmctld for those jobs is
/// enough.
[[nodiscard]] bool covers(const ResumeRequest& request,
                          std::span<const NodeName> nodes,
                          std::span<const Job> jobs);

}  // namespace flex
