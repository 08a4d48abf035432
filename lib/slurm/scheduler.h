// SPDX-License-Identifier: GPL-2.0-or-later
// What we ask of slurmctld. Reads first, then writes. Blocking; each call is one RPC of about a
// millisecond.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// State changes we ask for; see scontrol(1).
enum class NodeRequest { PowerUp, PowerDown, PowerDownForce, PowerDownAsap, Down, Idle, Resume };

class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// ClusterName.
  virtual Result<std::string> load_cluster_name() = 0;
  virtual Result<std::vector<Node>> load_nodes() = 0;
  /// The jobs with these ids that slurmctld still knows; one that it does not know is left out, not
  /// an error. Few ids are asked for one by one, many with one call for all jobs.
  virtual Result<std::vector<Job>> load_jobs(std::span<const JobId> ids) = 0;
  virtual Result<std::vector<Job>> load_all_jobs() = 0;
  virtual Result<std::vector<Partition>> load_partitions() = 0;

  /// One RPC for all the nodes. `reason` may be empty.
  virtual Result<Done> update_nodes(std::span<const NodeName> nodes,
                                    NodeRequest request,
                                    std::string_view reason) = 0;
  virtual Result<Done> set_admin_comment(JobId job, std::string_view text) = 0;
  /// Back to the queue, held. Precondition for a job that cannot be requeued (salloc, srun,
  /// --no-requeue).
  virtual Result<Done> requeue_and_hold(JobId job) = 0;
};

}  // namespace flex
