// SPDX-License-Identifier: GPL-2.0-or-later
// One complete look at Slurm and Compute Engine, and an index over it.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/fleet/cancelled.h"
#include "lib/fleet/pause.h"
#include "lib/fleet/view.h"
#include "lib/slurm/scheduler.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace flex {

/// A group of this cluster, with all that is in it.
struct SweptGroup {
  Group group{};
  std::string nodeset{};  ///< as its description says; may be gone from the config
  std::vector<ResizeRequest> requests{};
  std::vector<Instance> instances{};
  TimePoint read{};      ///< when both lists were last read
  int readings_due = 0;  ///< so many rounds more its lists are read whatever the record says
  /// A list is that of an earlier round, since when the record has not changed.
  bool is_kept = false;
};

struct Snapshot {
  TimePoint now{};
  std::string cluster{};
  Listed<Node> nodes{};
  Listed<Job> jobs{};
  Listed<Partition> partitions{};
  Listed<Reservation> reservations{};
  SlurmSettings settings{};
  /// Empty: not enforced, nobody waits, or slurmctld did not say.
  std::optional<Accounting> accounting{};
  std::vector<SweptGroup> groups{};
  /// Groups that have a name like ours and are not: only so that we do not try to use the name.
  std::vector<Group> foreign_groups{};
  std::vector<Policy> policies{};  ///< of ours
  /// Nodesets of which not everything could be read, and why: their groups are as they were seen
  /// last, and nothing is decided about them.
  std::map<std::string, Error> unseen{};
  std::set<std::string> seen_once{};       ///< nodesets that have been seen whole
  std::set<std::string> may_have_loose{};  ///< nodesets: something speaks for VMs in no group
  bool may_have_policies = false;          ///< the same for policies
  bool is_bulk_under_way = false;  ///< somebody's bulkInsert is: VMs may come that are not listed
  Pauses pauses{};                 ///< what an admin wants to be left alone
  CancelledWays cancelled{};       ///< requests that an admin does not want to be made again
  bool are_pauses_known = true;    ///< else what was paused stays so
  std::set<NodeName> asked{};      ///< count for max_nodes, though the groups may not show them
};

/// The view that plan_resume and find_room need, of these nodesets.
[[nodiscard]] FleetView fleet_of(const Config& config,
                                 const Snapshot& shot,
                                 const std::vector<std::size_t>& nodesets);

/// Where an entry or a request is.
template <class T>
struct Placed {
  const T* item = nullptr;
  const SweptGroup* group = nullptr;

  explicit operator bool() const { return item != nullptr; }

  const T* operator->() const { return item; }

  const T& operator*() const { return *item; }
};

/// All that is known of one node of a nodeset.
/// What most rules ask first comes first: on a large cluster it is the memory that takes the time.
struct NodePicture {
  const Node* node = nullptr;       ///< null: slurmctld does not know it
  Placed<Instance> entry{};         ///< a live one before a dead one
  Placed<ResizeRequest> request{};  ///< the oldest active one that names the node
  std::size_t nodeset = 0;
  bool is_static = false;
  bool is_entry_live = false;      ///< it is a VM that is there and stays
  bool is_bulk_pending = false;    ///< a bulkInsert is under way that may be for it
  std::vector<const Job*> jobs{};  ///< that hold the node
  NodeName name{};
  std::vector<Placed<Instance>> spares{};  ///< further VMs of this name, in other groups or zones
  std::vector<Placed<Instance>> alone{};   ///< that wait in Google's queue without a request
  std::vector<Placed<ResizeRequest>> requests{};  ///< all active ones, each in its own group
  Placed<ResizeRequest> failed{};                 ///< the newest FAILED one of ours that names it
  std::optional<Seconds> resume_timeout{};        ///< none: never

  /// slurmctld is bringing it up, or is about to.
  [[nodiscard]] bool is_coming_up() const;
  /// Up, or to be up: a VM behind it is wanted.
  [[nodiscard]] bool wants_vm() const;
  /// A job waits for it or is on it; or it is static, and no admin wants it away.
  [[nodiscard]] bool is_awaited() const;

  /// A VM is there and stays.
  [[nodiscard]] bool has_vm() const { return is_entry_live; }

  [[nodiscard]] bool is_queued_alone() const { return !alone.empty(); }

  /// A VM has been asked for and has not come.
  [[nodiscard]] bool is_asked_for() const { return request || is_queued_alone(); }
};

class Picture {
 public:
  Picture(const Config& config, const Snapshot& shot);

  [[nodiscard]] const std::vector<NodePicture>& nodes() const { return nodes_; }

  /// Null for a node of no nodeset.
  [[nodiscard]] const NodePicture* find(const NodeName& name) const;
  [[nodiscard]] const Job* find_job(JobId id) const;
  /// A node of no nodeset that Slurm has up or brings up: taken out of the config by mistake, it
  /// may be, with a job on it. Its VM and its request are left alone.
  [[nodiscard]] bool is_in_use_elsewhere(const NodeName& name) const;
  /// The view that plan_resume needs, of these nodesets.
  [[nodiscard]] FleetView fleet_of(const std::vector<std::size_t>& nodesets) const;

 private:
  NodePicture* at(const NodeName& name);
  void add_slurm();
  void add_timeouts();
  void add_cloud();
  void add_unnamed(const SweptGroup& group);
  void add_entry(const Placed<Instance>& entry);
  void add_request(const Placed<ResizeRequest>& request);

  const Config& config_;
  const Snapshot& shot_;
  std::vector<NodePicture> nodes_{};
  std::vector<std::size_t> first_of_nodeset_{};
  std::unordered_map<JobId, const Job*> jobs_{};
  std::unordered_set<NodeName> in_use_elsewhere_{};
};

}  // namespace flex
