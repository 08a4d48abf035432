// SPDX-License-Identifier: GPL-2.0-or-later
// What we ask of Compute Engine, in our own terms. Reads first, then writes.
//
// Calls return at once and answer through their `then`, during run(); independent calls go out side
// by side, and a `then` may start further calls. Everything happens on the thread that calls run().
// Retries, paging, tokens and deadlines are the implementation's business: an answer is final.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

template <class T>
using Then = std::function<void(Result<T>)>;

/// More of a console's text is not kept: what went wrong is at its end.
inline constexpr std::size_t kMaxSerialOutput = std::size_t{64} * 1024;

/// Figures for the summary line and the benchmark.
struct CloudStats {
  std::size_t calls = 0;    ///< HTTP requests to the Compute API, retries included
  std::size_t retries = 0;  ///< of those, the repeated ones
  std::chrono::steady_clock::time_point first_call{};
};

/// One HTTP request to the Compute API, and its answer.
struct CallNote {
  std::string_view method{};         ///< "regionInstanceGroupManagers.list"
  int status = 0;                    ///< 0: there was no answer
  std::chrono::milliseconds took{};  ///< from when it was handed to the network, its wait for a
                                     ///< free connection included
  bool is_retry = false;
};

using CallObserver = std::function<void(const CallNote&)>;

/// A VM as the list of its zone shows it.
struct ZoneVm {
  Instance vm{};
  MigName group{};  ///< that made it; empty: none, or not asked for
};

/// Which VMs of a zone.
struct VmSelection {
  std::string zone{};          ///< empty: all of the region
  std::string name_pattern{};  ///< RE2, for the whole name; empty: all
  bool with_group = false;     ///< costs the VMs' whole metadata
};

class Cloud {
 public:
  virtual ~Cloud() = default;

  // ---- reads: always complete (all pages) or an error ----
  /// Groups of the region whose names start with `prefix` (all if empty).
  virtual void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) = 0;
  virtual void fetch_group(const MigName& group, Then<Group> then) = 0;
  virtual void fetch_requests(const MigName& group, Then<std::vector<ResizeRequest>> then) = 0;
  virtual void fetch_instances(const MigName& group, Then<std::vector<Instance>> then) = 0;
  /// VMs, whoever made them. What waits in Google's queue is not among them.
  virtual void fetch_vms(const VmSelection& which, Then<std::vector<ZoneVm>> then) = 0;
  /// VMs of these zones (of all zones of the region if there are none) that are in no group and
  /// whose description is a mark of this cluster's (see ownership_mark).
  virtual void fetch_loose_instances(const std::string& cluster,
                                     const std::vector<std::string>& zones,
                                     Then<std::vector<Instance>> then) = 0;
  /// The region's bulkInsert operations that are not done, anybody's.
  virtual void fetch_bulk_operations(Then<std::vector<Operation>> then) = 0;
  /// Workload policies of the region whose names start with `prefix`.
  virtual void fetch_policies(const std::string& prefix, Then<std::vector<Policy>> then) = 0;
  /// The end of what the VM has written on its console, at most kMaxSerialOutput bytes. Invalid
  /// without a URL: there is no VM yet.
  virtual void fetch_serial_output(const Instance& instance, Then<std::string> then) = 0;
  /// Answers when the operation is done: Done, or the operation's own error put in its class. Of a
  /// bulkInsert the error also says what became of the VMs, zone by zone.
  virtual void wait_operation(const Operation& operation, Then<Done> then) = 0;

  // ---- writes: each carries a fresh requestId, kept for its own retries ----
  virtual void insert_group(const GroupSpec& spec, Then<Operation> then) = 0;
  virtual void insert_request(const RequestSpec& spec, Then<Operation> then) = 0;
  /// VMs that come one by one, at most kMaxRequestSize; the group's kind is Individual.
  virtual void create_instances(const MigName& group,
                                std::span<const NodeName> nodes,
                                Then<Operation> then) = 0;
  virtual void bulk_insert(const BulkSpec& spec, Then<Operation> then) = 0;
  virtual void insert_policy(const PolicySpec& spec, Then<Operation> then) = 0;
  /// Precondition while a group uses it.
  virtual void delete_policy(const std::string& policy, Then<Operation> then) = 0;
  /// Precondition if the request is not ACCEPTED (any more).
  virtual void cancel_request(const MigName& group,
                              const RequestName& request,
                              Then<Operation> then) = 0;
  /// At most kMaxRequestSize instances: those with a URL by URL, the others (queued, they have
  /// none) by name, in a call of their own. One that is gone already does not fail the rest.
  /// Answers when both calls have been answered, with the operation of the first. Without a group's
  /// name they are VMs of no group: one call each, side by side.
  virtual void delete_instances(const MigName& group,
                                std::span<const Instance> instances,
                                Then<Operation> then) = 0;
  virtual void delete_request(const MigName& group,
                              const RequestName& request,
                              Then<Operation> then) = 0;
  virtual void delete_group(const MigName& group, Then<Operation> then) = 0;

  // ---- driving ----
  /// Calls `what` after `delay`, during run().
  virtual void after(std::chrono::milliseconds delay, std::function<void()> what) = 0;
  /// Works until nothing is under way. At the deadline what is left is answered with Retry.
  virtual void run() = 0;
  /// A new deadline for what follows (the first one is set when the Cloud is opened).
  virtual void set_deadline(std::chrono::steady_clock::time_point deadline) = 0;
  [[nodiscard]] virtual CloudStats stats() const = 0;

  /// Is told of each HTTP request to the Compute API when it is over, during run().
  virtual void set_call_observer(CallObserver /*observer*/) {}
};

}  // namespace flex
