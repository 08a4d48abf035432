// SPDX-License-Identifier: GPL-2.0-or-later
// The emulated cloud: state, what is due when, and what happens then. Not thread-safe: the API
// holds one mutex around it. No I/O.
#pragma once

#include "emulator/clock.h"
#include "emulator/history.h"
#include "emulator/model.h"
#include "emulator/settings.h"

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace flex::emulator {

/// A call of the hook program that is to be made.
struct HookCall {
  bool is_up = false;
  std::string name{};
  std::string zone{};
  std::string group{};  ///< name of the group; empty: a standalone VM
};

/// An operation about to start.
struct OperationSpec {
  Place place{};
  std::string type{};
  std::string target{};
  std::uint64_t target_id = 0;
  Effect effect = Effect::None;
  std::string subject{};
  std::string request{};
  std::vector<std::string> names{};
};

/// What a VM is made of.
struct VmSpec {
  std::string project{};
  std::string zone{};
  std::string name{};
  std::string group{};
  std::string template_key{};
  std::int64_t run_seconds = 0;  ///< 0: no end
  Json body = Json::object();
};

enum class VmEnd { Deleted, LeaseOver, Vanished };

class World {
 public:
  World(Settings initial, std::function<double()> wall);

  Settings settings;
  VirtualClock clock;
  std::map<std::string, Group> groups{};
  std::map<std::string, Vm> vms{};
  std::map<std::string, Operation> operations{};
  std::map<std::string, Thing> templates{};
  std::map<std::string, Thing> policies{};
  std::vector<HookCall> hooks{};  ///< taken away by whoever runs them
  std::uint64_t changes = 0;      ///< counts up with every change
  History history{};
  std::uint64_t next_id = 1000;

  // ---- time ----
  /// Does everything that is due. Every call and every look at the state comes after one.
  void tick();
  /// The wall time at which something is due next, if anything is.
  [[nodiscard]] std::optional<double> next_due() const;

  // ---- operations (operations.cc) ----
  Operation& start_operation(OperationSpec spec, const std::string& method);
  void finish_operation(Operation& operation);

  // ---- VMs (vms.cc) ----
  Vm& make_vm(const VmSpec& spec);
  void end_vm(const std::string& key, VmEnd how);
  [[nodiscard]] std::int64_t count_vms(const std::string& zone) const;

  // ---- requests (requests.cc) ----
  void add_request(Group& group, Request request);
  void accept_request(Group& group, Request& request);
  void end_request(Group& group, Request& request, RequestState state, Json error);
  [[nodiscard]] std::int64_t count_active(const std::string& project,
                                          const std::string& region) const;
  /// Removes an entry; the VM must be gone.
  void drop_member(Group& group, const std::string& name);
  void fill_group(const std::string& key);

  // ---- capacity (capacity.cc) ----
  /// How many more VMs the zone takes.
  [[nodiscard]] std::int64_t free_slots(const std::string& zone) const;
  /// The quota that `count` more VMs of the template would exceed in the region, if any.
  [[nodiscard]] std::optional<Json> quota_problem(const std::string& project,
                                                  const std::string& region,
                                                  const std::string& template_key,
                                                  std::int64_t count) const;
  [[nodiscard]] Json capacity_problem(const std::vector<std::string>& zones,
                                      const std::string& template_key,
                                      std::int64_t count) const;

  void capacity_changed() { is_capacity_dirty_ = true; }

  // ---- templates (templates.cc) ----
  /// Key of the template that `url` names (name, partial or full URL), if it exists.
  [[nodiscard]] std::optional<std::string> find_template(const std::string& project,
                                                         const std::string& url);
  /// Templates or policies, by the collection's name.
  [[nodiscard]] std::map<std::string, Thing>& things(const std::string& collection);
  /// Makes the templates that the settings declare exist in the project.
  void declare_templates(const std::string& project);

  // ---- whole ----
  /// All state away; settings stay.
  void reset();
  /// Works out again what is due when, from the state alone (after loading it).
  void rebuild();

  [[nodiscard]] std::string region_of(const std::string& zone) const;
  [[nodiscard]] bool is_zone(const std::string& zone) const;
  [[nodiscard]] bool is_region(const std::string& region) const;

  [[nodiscard]] std::string stamp(double time) const { return format_stamp(clock.to_wall(time)); }

  [[nodiscard]] std::string random_suffix(std::size_t length);
  [[nodiscard]] bool chance(double probability);

 private:
  using Due = std::set<std::pair<double, std::string>>;
  bool tick_operations();
  bool tick_boots();
  bool tick_leases();
  void boot(Vm& vm);
  void grant();
  bool try_grant(Group& group, Request& request);
  void fill(Group& group);
  void place_request(Group& group, Request& request, const std::string& zone);
  void apply_effect(Operation& operation);
  void undo_effect(Operation& operation);
  void remove_members(Operation& operation);
  void place_vms(Operation& operation);
  [[nodiscard]] std::int64_t within_quota(const Operation& operation,
                                          std::int64_t least,
                                          std::int64_t wanted) const;
  [[nodiscard]] std::optional<Json> wait_reason(const Group& group,
                                                const std::string& name,
                                                std::int64_t count) const;
  void remove_group(const std::string& key);
  void index_request(const Group& group, const Request& request);
  void forget_old_operations();

  Due due_operations_{};
  Due due_boots_{};
  Due due_leases_{};
  std::map<std::string, std::int64_t> vms_in_zone_{};
  std::map<std::string, std::int64_t> active_requests_{};
  std::map<std::uint64_t, std::pair<std::string, std::string>> waiting_{};  ///< by id: group, name
  std::set<std::string> filling_{};      ///< groups with entries to be given a VM
  std::set<std::string> blocked_{};      ///< operations that wait for requests to end
  std::vector<std::string> finished_{};  ///< ended operations, oldest first
  std::size_t finished_from_ = 0;
  bool is_capacity_dirty_ = false;
  std::mt19937_64 random_;
};

/// {"errors":[{"code":…,"message":…}]} as an operation or a request carries it.
[[nodiscard]] Json error_json(const std::string& code, const std::string& message);

}  // namespace flex::emulator
