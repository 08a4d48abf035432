// SPDX-License-Identifier: GPL-2.0-or-later
// A Scheduler in memory for unit tests: set its nodes, jobs and partitions, look at what was asked.
#pragma once

#include "lib/slurm/scheduler.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex::test {

class FakeScheduler : public Scheduler {
 public:
  /// What a write asked for, in the order of the calls. A write that was made to fail is not here.
  struct Update {
    /// "node POWER_DOWN_FORCE", "extra", "admin_comment", "requeue", "requeue_hold", "cancel",
    /// "signal", "notify", "create_reservation", "update_reservation", "delete_reservation"
    std::string what{};
    std::vector<NodeName> nodes{};
    JobId job = 0;
    std::string text{};  ///< the reason, the comment, the line, or the reservation's name
    int signal = 0;
    TimePoint start{};  ///< of a reservation, as is `end`
    TimePoint end{};
    friend bool operator==(const Update&, const Update&) = default;
  };

  std::string cluster = "hpc";
  std::vector<Node> nodes{};
  std::vector<TimePoint> asked_since{};  ///< by refresh_nodes: the epoch asks for all
  std::vector<Job> jobs{};
  std::vector<Partition> partitions{};
  std::vector<Reservation> reservations{};
  SlurmSettings settings{.resume_timeout = Seconds{3600},
                         .suspend_timeout = Seconds{60},
                         .state_save_location = "/var/spool/slurmctld",
                         .version = "22.05.8"};
  Accounting accounting{};
  Controller controller{.is_here = true, .host = "ctl"};
  std::vector<Update> updates{};
  /// The names of all methods called, reads too.
  std::vector<std::string> calls{};

  /// Makes the next `count` calls of a method ("load_nodes", "update_nodes" …) fail.
  void fail_next(const std::string& method, Error error, int count = 1);

  /// An idle cloud node that is powered down, or one in the given raw state.
  Node& add_node(std::string_view name, std::optional<std::uint32_t> state = {});
  /// A configuring batch job on these nodes, which may be requeued.
  Job& add_job(JobId id, std::vector<NodeName> on, std::optional<Seconds> time_limit);
  /// Null where there is none.
  [[nodiscard]] Node* find_node(std::string_view name);
  [[nodiscard]] Job* find_job(JobId id);
  [[nodiscard]] Reservation* find_reservation(std::string_view name);

  Result<std::string> load_cluster_name() override;
  Result<std::vector<Node>> load_nodes() override;
  Result<std::vector<Job>> load_jobs(std::span<const JobId> ids) override;
  Result<std::vector<Job>> load_all_jobs() override;
  Result<std::vector<Partition>> load_partitions() override;
  /// Always a change.
  Result<bool> refresh_nodes(Listed<Node>& list) override;
  Result<bool> refresh_jobs(Listed<Job>& list) override;
  Result<bool> refresh_partitions(Listed<Partition>& list) override;
  Result<bool> refresh_reservations(Listed<Reservation>& list) override;
  Result<SlurmSettings> load_settings() override;
  Result<Accounting> load_accounting(std::span<const std::string> users) override;
  Result<Controller> find_controller() override;
  /// Changes the nodes' states as slurmctld would have done a moment later, and gives jobs back
  /// where it would. NotFound if one of them does not exist, as slurmctld does.
  Result<Done> update_nodes(std::span<const NodeName> names,
                            NodeRequest request,
                            std::string_view reason) override;
  Result<Done> update_nodes_and_extra(std::span<const NodeName> names,
                                      NodeRequest request,
                                      std::string_view reason,
                                      std::string_view extra) override;
  Result<Done> set_node_extra(std::span<const NodeName> names, std::string_view text) override;
  Result<Done> set_admin_comment(JobId job, std::string_view text) override;
  Result<Done> requeue(JobId job) override;
  Result<Done> requeue_and_hold(JobId job) override;
  Result<Done> cancel_job(JobId job) override;
  /// Precondition for a job that does not run, as those of add_job do not at first.
  Result<Done> signal_job(JobId job, int signal) override;
  Result<Done> notify_job(JobId job, std::string_view text) override;
  /// NotFound for a node that does not exist, Invalid without nodes or with times the wrong way
  /// round, as are updates.
  Result<Done> create_reservation(const Reservation& reservation) override;
  Result<Done> update_reservation(const Reservation& reservation) override;
  Result<Done> delete_reservation(const std::string& name) override;

 private:
  struct Failure {
    Error error{};
    int count = 0;
  };

  /// Notes the call; the error that it is to fail with, if any.
  std::optional<Error> enter(const std::string& method);
  /// What is wrong with a reservation that is to be made or changed.
  std::optional<Error> refuse(const Reservation& reservation);
  /// The job if it runs.
  Result<Job*> find_running(JobId job);
  /// As requeue and requeue_and_hold do it, noted under `what`.
  Result<Done> send_back(JobId job, const std::string& what);
  /// Back to the queue, as after a node failure; a job that may not be requeued ends.
  static void give_back(Job& job);

  std::map<std::string, Failure> failures_{};
};

}  // namespace flex::test
