// SPDX-License-Identifier: GPL-2.0-or-later
// Compute Engine in memory behind the Cloud interface, for tests of what uses it.
#pragma once

#include "lib/gce/cloud.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

/// One call, as a test wants to see it: "insert_request hpc-a3u/j7-abc n=4 run=15300". A policy's
/// name is in `request`.
struct CloudCall {
  std::string method{};
  std::string group{};
  std::string request{};
  std::vector<std::string> nodes{};
  Seconds run_duration{};
  std::vector<std::string> zones{};
  std::size_t min_count = 0;
};

/// Behaves like Compute Engine in the essentials: names are unique, a request needs its group, only
/// ACCEPTED is cancelled, only the finished is deleted; what is asked for one by one is queued
/// until the test serves it, VMs of no group come at once. Writes act when they are called; answers
/// come in run(), in the order of the calls; time is virtual and stands still but for after().
class FakeCloud final : public Cloud {
 public:
  struct State {
    Group group{};
    GroupSpec spec{};
    std::vector<Instance> instances{};
    std::vector<ResizeRequest> requests{};
  };

  // ---- setting the scene ----
  /// A group that is there already.
  State& add_group(const std::string& name, const std::string& description = {});
  /// A queued request in it, with its entries.
  ResizeRequest& add_request(const std::string& group,
                             const std::string& name,
                             const std::vector<std::string>& nodes,
                             RequestState state = RequestState::Accepted);
  /// A VM that runs in it.
  Instance& add_instance(const std::string& group, const std::string& node);
  /// The queue serves this request: its nodes run.
  void serve(const std::string& group, const std::string& request);

  /// The queue serves these, asked for one by one: they run, until `ends`.
  void serve_instances(const std::string& group,
                       const std::vector<std::string>& nodes,
                       std::optional<TimePoint> ends = {});
  /// A VM of no group that runs.
  Instance& add_loose(const std::string& node, const std::string& description);
  Policy& add_policy(const std::string& name, const std::string& description = {});
  /// How many VMs a bulk_insert may make from now on; fewer than it needs, and its operation ends
  /// in an error. Nothing: as many as are asked for.
  std::optional<std::size_t> bulk_capacity{};
  /// True: a bulk_insert stays under way, in fetch_bulk_operations, until finish_bulk().
  bool is_bulk_held = false;
  void finish_bulk();

  /// The next call of this method ("insert_request") is answered with `error` and does nothing; the
  /// one after it with the next error, …
  void next_error(std::string_view method, Error error);
  /// The next call of this method acts, but its answer is lost: Retry.
  void lose_reply(std::string_view method);
  /// Operations of this method end in this error (the write itself is answered well).
  void next_operation_error(std::string_view method, ProviderError error);
  /// What VMs have written on their consoles, by node; NotFound for one that is not here.
  std::map<std::string, std::string> serial_outputs{};
  /// What time the groups and requests that are made carry.
  TimePoint now{};

  // ---- looking ----
  std::map<std::string, State> groups{};
  std::vector<Instance> loose{};  ///< VMs of no group
  std::map<std::string, Policy> policies{};
  std::vector<PolicySpec> policy_specs{};  ///< as they were asked for
  std::vector<BulkSpec> bulk_specs{};      ///< the same
  std::vector<CloudCall> calls{};
  [[nodiscard]] std::size_t count(std::string_view method) const;
  [[nodiscard]] const ResizeRequest* find_request(const std::string& group,
                                                  const std::string& name) const;
  [[nodiscard]] const Instance* find_instance(const std::string& group,
                                              const std::string& node) const;
  [[nodiscard]] const Instance* find_loose(const std::string& node) const;
  std::chrono::milliseconds elapsed{0};  ///< virtual

  // ---- Cloud ----
  void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) override;
  void fetch_group(const MigName& group, Then<Group> then) override;
  void fetch_requests(const MigName& group, Then<std::vector<ResizeRequest>> then) override;
  void fetch_instances(const MigName& group, Then<std::vector<Instance>> then) override;
  void fetch_vms(const VmSelection& which, Then<std::vector<ZoneVm>> then) override;
  void fetch_loose_instances(const std::string& cluster,
                             const std::vector<std::string>& zones,
                             Then<std::vector<Instance>> then) override;
  void fetch_bulk_operations(Then<std::vector<Operation>> then) override;
  void fetch_policies(const std::string& prefix, Then<std::vector<Policy>> then) override;
  void fetch_serial_output(const Instance& instance, Then<std::string> then) override;
  void wait_operation(const Operation& operation, Then<Done> then) override;
  void insert_group(const GroupSpec& spec, Then<Operation> then) override;
  void insert_request(const RequestSpec& spec, Then<Operation> then) override;
  void create_instances(const MigName& group,
                        std::span<const NodeName> nodes,
                        Then<Operation> then) override;
  void bulk_insert(const BulkSpec& spec, Then<Operation> then) override;
  void insert_policy(const PolicySpec& spec, Then<Operation> then) override;
  void delete_policy(const std::string& policy, Then<Operation> then) override;
  void cancel_request(const MigName& group,
                      const RequestName& request,
                      Then<Operation> then) override;
  void delete_instances(const MigName& group,
                        std::span<const Instance> instances,
                        Then<Operation> then) override;
  void delete_request(const MigName& group,
                      const RequestName& request,
                      Then<Operation> then) override;
  void delete_group(const MigName& group, Then<Operation> then) override;
  void after(std::chrono::milliseconds delay, std::function<void()> what) override;
  void run() override;

  void set_deadline(std::chrono::steady_clock::time_point) override {}

  [[nodiscard]] CloudStats stats() const override;

 private:
  template <class T>
  void answer(CloudCall call, Then<T> then, const std::function<Result<T>()>& act);
  Operation start_operation(std::string_view method);
  Result<State*> find(const MigName& group);
  Result<Operation> delete_loose(std::span<const Instance> instances);
  void make_loose(const std::string& operation, const BulkSpec& spec);

  struct Fault {
    bool acts = false;
    Error error{};
  };

  std::map<std::string, std::deque<Fault>, std::less<>> faults_{};
  std::map<std::string, std::deque<ProviderError>, std::less<>> operation_faults_{};
  std::map<std::string, std::optional<ProviderError>> operations_{};
  std::map<std::string, BulkSpec> held_{};  ///< by operation
  std::deque<std::function<void()>> answers_{};
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_{};
};

}  // namespace flex
