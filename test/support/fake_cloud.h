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

/// One call, as a test wants to see it: "insert_request hpc-a3u/j7-abc n=4 run=15300".
struct CloudCall {
  std::string method{};
  std::string group{};
  std::string request{};
  std::vector<std::string> nodes{};
  Seconds run_duration{};
};

/// Behaves like Compute Engine in the essentials: names are unique, a request needs its group, only
/// ACCEPTED is cancelled, only the finished is deleted. Writes act when they are called; answers
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
  std::vector<CloudCall> calls{};
  [[nodiscard]] std::size_t count(std::string_view method) const;
  [[nodiscard]] const ResizeRequest* find_request(const std::string& group,
                                                  const std::string& name) const;
  [[nodiscard]] const Instance* find_instance(const std::string& group,
                                              const std::string& node) const;
  std::chrono::milliseconds elapsed{0};  ///< virtual

  // ---- Cloud ----
  void fetch_groups(const std::string& prefix, Then<std::vector<Group>> then) override;
  void fetch_group(const MigName& group, Then<Group> then) override;
  void fetch_requests(const MigName& group, Then<std::vector<ResizeRequest>> then) override;
  void fetch_instances(const MigName& group, Then<std::vector<Instance>> then) override;
  void fetch_serial_output(const Instance& instance, Then<std::string> then) override;
  void wait_operation(const Operation& operation, Then<Done> then) override;
  void insert_group(const GroupSpec& spec, Then<Operation> then) override;
  void insert_request(const RequestSpec& spec, Then<Operation> then) override;
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

  void fetch_loose_instances(const std::string&, Then<std::vector<Instance>> then) override {
    answers_.push_back([then = std::move(then)] { then(std::vector<Instance>{}); });
  }

  void fetch_bulk_operations(Then<std::vector<Operation>> then) override {
    answers_.push_back([then = std::move(then)] { then(std::vector<Operation>{}); });
  }

  void fetch_policies(const std::string&, Then<std::vector<Policy>> then) override {
    answers_.push_back([then = std::move(then)] { then(std::vector<Policy>{}); });
  }

  void create_instances(const MigName&, std::span<const NodeName>, Then<Operation> then) override {
    answers_.push_back([then = std::move(then)] { then(Operation{.is_done = true}); });
  }

  void bulk_insert(const BulkSpec&, Then<Operation> then) override {
    answers_.push_back([then = std::move(then)] { then(Operation{.is_done = true}); });
  }

  void insert_policy(const PolicySpec&, Then<Operation> then) override {
    answers_.push_back([then = std::move(then)] { then(Operation{.is_done = true}); });
  }

  void delete_policy(const std::string&, Then<Operation> then) override {
    answers_.push_back([then = std::move(then)] { then(Operation{.is_done = true}); });
  }

  void after(std::chrono::milliseconds delay, std::function<void()> what) override;
  void run() override;

  void set_deadline(std::chrono::steady_clock::time_point) override {}

  [[nodiscard]] CloudStats stats() const override;

 private:
  template <class T>
  void answer(CloudCall call, Then<T> then, const std::function<Result<T>()>& act);
  Operation start_operation(std::string_view method);
  Result<State*> find(const MigName& group);

  struct Fault {
    bool acts = false;
    Error error{};
  };

  std::map<std::string, std::deque<Fault>, std::less<>> faults_{};
  std::map<std::string, std::deque<ProviderError>, std::less<>> operation_faults_{};
  std::map<std::string, std::optional<ProviderError>> operations_{};
  std::deque<std::function<void()>> answers_{};
  std::multimap<std::chrono::milliseconds, std::function<void()>> timers_{};
};

}  // namespace flex
