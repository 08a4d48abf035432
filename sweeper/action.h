// SPDX-License-Identifier: GPL-2.0-or-later
// What the sweeper decides to do: each with the rule that says so and the reason why.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/node_lease.h"
#include "lib/slurm/scheduler.h"
#include "resume/demand.h"
#include "resume/plan.h"

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace flex {

enum class Rule {
  UnrequestedNode,
  FailedRequest,
  StaleRequest,
  ProvisionTimeout,
  KeepWaiting,
  BootTimeout,
  UnbackedNode,
  OrphanInstance,
  StaticNode,
  EmptyMig,
  FinishedRequest,
  JobNote,
  NodeNote,
  LeaseEnd,
  UnhealthyNode,
  UnusedPolicy,
  SurplusRequest,
  Stockout,
  Resubmit,
  UnusableNode,
  IncompleteJob,
  NoLongerEligible,
  Pause,   ///< an admin's
  ByHand,  ///< no rule of the sweeper's: an admin has said so
};

[[nodiscard]] std::string_view to_string(Rule rule);

struct CancelRequest {
  MigName group{};
  RequestName request{};
  std::vector<NodeName> nodes{};
  JobId job = 0;
};

struct DeleteRequest {
  MigName group{};
  RequestName request{};
};

/// At most kMaxRequestSize entries of one group.
struct DeleteInstances {
  MigName group{};
  std::vector<Instance> instances{};
  bool keep_serial_log = false;
};

struct DeleteGroup {
  MigName group{};
};

/// Ask for VMs, as flex-resume does.
struct AskForNodes {
  Demand demand{};
  ResumePlan plan{};
};

/// The job cannot be served: comment, hold, nodes back; as flex-resume does.
struct GiveJobBack {
  Demand::JobNodes job{};
  Error error{};
};

struct UpdateNodes {
  NodeRequest request = NodeRequest::PowerDownForce;
  std::vector<NodeName> nodes{};
  std::string reason{};  ///< what sinfo -R shows; may be empty
  /// Not for nodes that have a VM by now: slurmctld would ignore the VM's registration.
  bool only_without_vm = false;
};

struct RequeueJob {
  JobId job = 0;
  bool hold = false;
  std::vector<NodeName> nodes{};  ///< where it was; if they have changed it is left alone
};

struct CancelJob {
  JobId job = 0;
  std::vector<NodeName> nodes{};  ///< where it was; if they have changed it is left alone
};

/// What the nodes' extra says of their VMs; what others wrote there stays.
struct NoteLease {
  std::vector<NodeName> nodes{};
  std::optional<NodeLease> lease{};  ///< none: the VMs are gone
};

/// What the nodes' extra says of their drain, which a power-down would take away; what others wrote
/// there stays.
struct NoteDrain {
  std::vector<NodeName> nodes{};
  std::string reason{};  ///< empty: they were undrained
};

struct TellJob {
  JobId job = 0;
  std::string comment{};  ///< the whole AdminComment
};

/// Tells a running job that its VMs end: a line in its output, the comment, and the signal.
struct WarnJob {
  JobId job = 0;
  int signal = 0;         ///< 0: none
  std::string line{};     ///< in its output; empty: none
  std::string comment{};  ///< the whole AdminComment
  TimePoint ends{};       ///< what it is told, and in which of its lives: to be remembered
  std::uint32_t restart_count = 0;
};

/// Makes the reservation, or gives the one of this name these nodes and times.
struct SetReservation {
  Reservation reservation{};
  bool is_new = false;
  /// It keeps jobs off fewer nodes, or for less time. Only done if all that keeps them off others
  /// has been done: a fence never has a gap. The same holds for DeleteReservation.
  bool is_smaller = false;
};

struct DeleteReservation {
  std::string name{};
};

struct DeletePolicy {
  std::string name{};
};

using ActionKind = std::variant<CancelRequest,
                                DeleteRequest,
                                DeleteInstances,
                                DeleteGroup,
                                AskForNodes,
                                GiveJobBack,
                                UpdateNodes,
                                RequeueJob,
                                CancelJob,
                                NoteLease,
                                NoteDrain,
                                TellJob,
                                WarnJob,
                                SetReservation,
                                DeleteReservation,
                                DeletePolicy>;

struct Action {
  Rule rule = Rule::JobNote;
  std::string why{};
  ActionKind what{};
};

/// "cancel_request", "POWER_DOWN_FORCE", …
[[nodiscard]] std::string_view kind_text(const Action& action);
/// The nodes that it is about; may be none.
[[nodiscard]] std::vector<NodeName> nodes_of(const Action& action);
/// The job that it is about; 0: none.
[[nodiscard]] JobId job_of(const Action& action);
/// The group, "group/request", or nothing.
[[nodiscard]] std::string target_of(const Action& action);

}  // namespace flex
