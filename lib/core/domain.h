// SPDX-License-Identifier: GPL-2.0-or-later
// Plain structs for what we see in Slurm and in Compute Engine. No behaviour beyond small
// predicates, no I/O.
#pragma once

#include "lib/core/names.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace flex {

using Seconds = std::chrono::seconds;
using TimePoint = std::chrono::sys_seconds;

/// Google's limits of a Flex Start VM's life.
inline constexpr Seconds kMinRunDuration = std::chrono::minutes{10};
inline constexpr Seconds kMaxRunDuration = std::chrono::hours{7 * 24};

// ---- Slurm
// -------------------------------------------------------------------------------------------------------

struct Node {
  NodeName name{};
  std::uint32_t state = 0;  ///< raw bits; ask lib/slurm/node_state.h
  std::string reason{};
  std::string comment{};
  std::string extra{};
  std::string address{};
  TimePoint boot_time{};
  TimePoint last_busy{};
};

struct Job {
  JobId id = 0;
  std::uint32_t state = 0;  ///< raw bits; ask lib/slurm/node_state.h
  /// Minutes in Slurm, seconds here; empty: UNLIMITED or not set.
  std::optional<Seconds> time_limit{};
  std::optional<Seconds> time_min{};  ///< --time-min
  std::uint32_t restart_count = 0;
  std::vector<NodeName> nodes{};  ///< allocated nodes
  std::string partition{};
  std::string reservation{};  ///< --reservation, with commas; empty: none
  std::string account{};
  std::string qos{};
  std::uint32_t association = 0;  ///< its id in the accounting; 0: none
  // Of a configuring job only: "cpu=2,mem=4G,node=1".
  std::string tres_asked{};
  std::string tres_allocated{};
  std::string name{};
  std::string user{};  ///< empty where slurmctld does not say: user_id is always there
  std::string comment{};
  std::string admin_comment{};
  std::string extra{};  ///< empty before Slurm 23.02
  JobId array_job_id = 0;
  std::optional<std::uint32_t> array_task{};  ///< which of the array it is
  JobId het_job_id = 0;
  std::uint32_t user_id = 0;
  bool is_batch = false;
  bool may_requeue = false;
  bool is_configuring = false;  ///< allocated, waits for its nodes to boot
  bool is_running = false;      ///< base state RUNNING (a configuring job is, too)
  bool is_pending = false;
  bool is_finished = false;  ///< completed, cancelled, failed …, or about to be
  TimePoint submit_time{};
  TimePoint start_time{};
  TimePoint end_time{};
  std::optional<TimePoint> deadline{};  ///< --deadline

  /// Allocated and not over (suspended, it may be): its nodes are its own.
  [[nodiscard]] bool holds_nodes() const { return !is_pending && !is_finished; }
};

struct Partition {
  std::string name{};
  std::vector<NodeName> nodes{};
  std::optional<Seconds> max_time{};
  std::optional<Seconds> default_time{};
  Seconds resume_timeout{};                 ///< 0: the global one
  bool resume_timeout_is_infinite = false;  ///< INFINITE, which Slurm knows from 25.05 on
  Seconds suspend_timeout{};
  std::optional<Seconds> over_time_limit{};  ///< empty: the global one; 0 for UNLIMITED
  bool is_exclusive = false;                 ///< OverSubscribe=EXCLUSIVE: a node is one job's
  bool starts_jobs = true;                   ///< state UP or DRAIN; else DOWN or INACTIVE
  // Empty: all, or none denied.
  std::vector<std::string> allow_accounts{};
  std::vector<std::string> deny_accounts{};
  std::vector<std::string> allow_qos{};
  std::vector<std::string> deny_qos{};
  std::string qos{};  ///< the partition's own, whose limits hold for all of its jobs; empty: none
  std::optional<std::uint32_t> max_nodes{};  ///< of a job; empty: no limit
  std::uint32_t min_nodes = 0;
};

/// A reservation of nodes, whoever made it.
struct Reservation {
  std::string name{};
  std::vector<NodeName> nodes{};
  TimePoint start{};
  TimePoint end{};
  bool is_maintenance = false;  ///< flag MAINT
  bool ignores_jobs = false;    ///< flag IGNORE_JOBS
  bool may_overlap = false;     ///< flag OVERLAP
  bool is_partial = false;      ///< of some cores of its nodes only
};

// ---- Compute Engine
// ----------------------------------------------------------------------------------------------

/// How VMs come into being.
enum class GroupKind {
  Queued,      ///< a managed group, filled by resize requests
  Individual,  ///< a managed group whose VMs come one by one
  Loose,       ///< no group at all: VMs of bulkInsert, gathered by nodeset; it has no name
};

/// How many entries of a group have which currentAction.
struct ActionCounts {
  std::int64_t none = 0;
  std::int64_t creating = 0;
  std::int64_t deleting = 0;
  std::int64_t other = 0;

  friend bool operator==(const ActionCounts&, const ActionCounts&) = default;
};

/// A managed instance group (regional).
struct Group {
  MigName name{};
  std::string id{};  ///< Google's, another for the next group of the same name; may be empty
  std::string description{};
  std::string instance_template{};
  std::vector<std::string> zones{};  ///< that its VMs may be in; none: not said
  std::int64_t target_size = 0;
  bool is_stable = true;
  ActionCounts actions{};
  TimePoint created{};
  GroupKind kind = GroupKind::Queued;  ///< as its description says
  std::size_t step = 0;                ///< of on_stockout, as its description says
  std::string policy{};                ///< name of its workload policy; empty: none
};

enum class InstanceStatus {
  None,     ///< no VM behind the entry (queued, or vanished)
  Pending,  ///< waits for capacity: there is no machine yet
  Provisioning,
  Staging,
  Running,
  PendingStop,
  Stopping,
  Stopped,
  Suspending,
  Suspended,
  Repairing,
  Terminated,
  Deprovisioning,
  Unknown,  ///< a value newer than this code
};

enum class InstanceAction {
  None,
  Creating,  ///< CREATING, CREATING_WITHOUT_RETRIES, RECREATING
  Deleting,  ///< DELETING, ABANDONING
  Other,     ///< anything else that the group is doing to it
};

/// An error Google reports about a VM or a request, already put in a class.
struct ProviderError {
  std::string code{};
  std::string message{};
  /// When Google thinks there will be capacity; empty: not said, or "indefinite".
  std::optional<TimePoint> estimated_availability{};
};

/// One entry of a group's list of managed instances.
struct Instance {
  NodeName name{};
  std::string url{};  ///< may be empty while queued
  std::string id{};   ///< of the VM, another for the next one of the same name; may be empty
  InstanceStatus status = InstanceStatus::None;
  InstanceAction action = InstanceAction::None;
  std::optional<TimePoint> terminates{};  ///< the VM's hard end
  std::optional<ProviderError> last_error{};
  std::string description{};  ///< of a VM that is in no group; else empty

  /// An entry whose VM is gone or stopped for good: the name must be deleted from the group before
  /// it can be asked for again.
  [[nodiscard]] bool is_dead() const {
    if (action != InstanceAction::None) return false;
    return status == InstanceStatus::None || status == InstanceStatus::Stopped ||
           status == InstanceStatus::Terminated || status == InstanceStatus::Suspended;
  }

  [[nodiscard]] bool is_leaving() const {
    return action == InstanceAction::Deleting || status == InstanceStatus::Stopping ||
           status == InstanceStatus::PendingStop || status == InstanceStatus::Deprovisioning;
  }

  /// Waits in Google's queue. Google's API says PENDING for "waiting for available capacity", and
  /// an entry may also have no status at all: the entries of one group may answer either.
  [[nodiscard]] bool is_queued() const {
    return action == InstanceAction::Creating &&
           (status == InstanceStatus::None || status == InstanceStatus::Pending);
  }
};

enum class RequestState {
  Creating,
  Accepted,
  Provisioning,
  Succeeded,
  Failed,
  Cancelled,
  Deleting,
  Unknown
};

struct ResizeRequest {
  RequestName name{};
  std::string id{};  ///< Google's, another for the next request of the same name; may be empty
  MigName group{};
  RequestState state = RequestState::Unknown;
  std::vector<NodeName> nodes{};
  Seconds run_duration{};
  std::string description{};
  TimePoint created{};
  std::optional<ProviderError> error{};         ///< final
  std::optional<ProviderError> last_attempt{};  ///< why it still waits; may be stale

  /// Still waiting, or being served: asking again for its nodes would ask twice. An unknown state
  /// counts as active.
  [[nodiscard]] bool is_active() const {
    return state != RequestState::Succeeded && state != RequestState::Failed &&
           state != RequestState::Cancelled && state != RequestState::Deleting;
  }
};

struct GroupSpec {
  MigName name{};
  std::string description{};
  std::string instance_template{};  ///< name, partial or full URL
  std::vector<std::string> zones{};
  GroupKind kind = GroupKind::Queued;
  std::string policy{};  ///< name of a workload policy of the region; empty: none
};

/// A workload policy: how near to each other the VMs of a group are.
struct Policy {
  std::string name{};
  std::string id{};  ///< Google's, another for the next policy of the same name; may be empty
  std::string description{};
  TimePoint created{};
};

struct PolicySpec {
  std::string name{};
  std::string description{};
  int max_distance = 0;                ///< 1 SUBBLOCK, 2 BLOCK, 3 CLUSTER; 0: not said
  std::string accelerator_topology{};  ///< "4x4"; empty: not said
};

/// VMs without a group, asked for in one call.
struct BulkSpec {
  std::string description{};  ///< of each VM
  std::string instance_template{};
  std::vector<std::string> zones{};  ///< all in one of them; empty: any of the region
  std::vector<NodeName> nodes{};
  std::size_t min_count = 0;  ///< fewer than this, and none is kept
  Seconds run_duration{};
};

struct RequestSpec {
  RequestName name{};
  MigName group{};
  std::string description{};
  std::vector<NodeName> nodes{};
  Seconds run_duration{};
};

/// A long-running operation that a write started.
struct Operation {
  std::string name{};
  std::string zone{};  ///< empty: it is the region's
  bool is_done = false;
  std::optional<ProviderError> error{};
};

}  // namespace flex
