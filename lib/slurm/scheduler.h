// SPDX-License-Identifier: GPL-2.0-or-later
// What we ask of slurmctld. Reads first, then writes. Blocking; each call is one RPC of about a
// millisecond.
#pragma once

#include "lib/core/accounting.h"
#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// State changes we ask for; see scontrol(1).
enum class NodeRequest {
  PowerUp,
  PowerDown,
  PowerDownForce,
  PowerDownAsap,
  Down,
  Idle,
  Resume,
  Drain,
  Undrain
};

/// As scontrol spells it: "POWER_DOWN_FORCE".
[[nodiscard]] std::string_view to_string(NodeRequest request);

/// What slurmctld said last, and when that was: with it only a change is asked for.
template <class T>
struct Listed {
  std::vector<T> items{};
  TimePoint as_of{};  ///< slurmctld's clock; the epoch: never
  /// When all of it was last asked for, whatever had changed.
  std::chrono::steady_clock::time_point asked_in_full{};
};

/// What we need of slurmctld's configuration.
struct SlurmSettings {
  Seconds resume_timeout{};                 ///< the global one
  bool resume_timeout_is_infinite = false;  ///< INFINITE, which Slurm knows from 25.05 on
  Seconds suspend_timeout{};
  Seconds kill_wait{};  ///< between SIGTERM and SIGKILL for a job whose time is over
  /// How much longer than its time limit a job may run. 0 for UNLIMITED: then nothing ends it.
  Seconds over_time_limit{};
  std::string state_save_location{};
  std::string version{};  ///< "22.05.8", of slurmctld
  Enforcement enforced{};
};

/// Whether the slurmctld that is in charge runs on this host, and which host it is.
struct Controller {
  bool is_here = false;
  bool is_candidate = true;  ///< this host is one of slurm.conf's SlurmctldHosts
  std::string host{};
};

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

  /// Brings the list up to date. True if slurmctld sent it again, false if nothing has changed and
  /// the list stays as it is. Now and then all of it is asked for: a clock that was set back would
  /// hide changes. After an error the list is as it was.
  virtual Result<bool> refresh_nodes(Listed<Node>& nodes) = 0;
  virtual Result<bool> refresh_jobs(Listed<Job>& jobs) = 0;
  virtual Result<bool> refresh_partitions(Listed<Partition>& partitions) = 0;

  virtual Result<bool> refresh_reservations(Listed<Reservation>& reservations) = 0;

  virtual Result<SlurmSettings> load_settings() = 0;
  /// All accounts and QOS, and the associations of these users; of all, if none is named. Nothing
  /// where there is no accounting.
  virtual Result<Accounting> load_accounting(std::span<const std::string> users) = 0;
  /// Of several controllers the first that answers is in charge. Retry if none does.
  virtual Result<Controller> find_controller() = 0;

  /// One RPC for all the nodes. `reason` may be empty.
  virtual Result<Done> update_nodes(std::span<const NodeName> nodes,
                                    NodeRequest request,
                                    std::string_view reason) = 0;
  /// Both in one RPC: slurmctld does both or, if it dies, neither. An empty `extra` clears it.
  virtual Result<Done> update_nodes_and_extra(std::span<const NodeName> nodes,
                                              NodeRequest request,
                                              std::string_view reason,
                                              std::string_view extra) = 0;
  /// One RPC for all the nodes, whose `extra` becomes this text; empty: none.
  virtual Result<Done> set_node_extra(std::span<const NodeName> nodes, std::string_view text) = 0;
  virtual Result<Done> set_admin_comment(JobId job, std::string_view text) = 0;
  /// Back to the queue. Precondition as below.
  virtual Result<Done> requeue(JobId job) = 0;
  /// Back to the queue, held. Precondition for a job that cannot be requeued (salloc, srun,
  /// --no-requeue).
  virtual Result<Done> requeue_and_hold(JobId job) = 0;

  /// As scancel does. Of an array only this task, of a heterogeneous job all of it. NotFound or
  /// Precondition for a job that is over.
  virtual Result<Done> cancel_job(JobId job) = 0;

  /// The signal goes to all of the job's processes, the batch script among them. NotFound or
  /// Precondition for a job that does not run yet, or any more. Of an array only this task gets it;
  /// the leader of a heterogeneous job stands for all of it. A signal that srun passes on (USR1,
  /// USR2) may reach its tasks twice.
  virtual Result<Done> signal_job(JobId job, int signal) = 0;
  /// A line in the job's own output; lost while the job still waits for its nodes.
  virtual Result<Done> notify_job(JobId job, std::string_view text) = 0;

  /// Keeps jobs that would run past its start off the nodes: flags MAINT, IGNORE_JOBS; nobody can
  /// use it, and it is gone some seconds after its end. AlreadyExists if there is one of this name,
  /// Invalid without nodes.
  virtual Result<Done> create_reservation(const Reservation& reservation) = 0;
  /// Its nodes and its times; of one that has started the start stays as it is. NotFound if it is
  /// gone.
  virtual Result<Done> update_reservation(const Reservation& reservation) = 0;
  virtual Result<Done> delete_reservation(const std::string& name) = 0;
};

}  // namespace flex
