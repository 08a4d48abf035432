// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/leaks.h"

#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/lease.h"

#include <algorithm>
#include <set>
#include <utility>

namespace flex {

namespace {

/// So many rounds after its grace a thing may still be there: seen twice, the budget of a round,
/// a call that had to be repeated.
constexpr int kRounds = 8;
/// Google takes its time to delete a VM.
constexpr Seconds kDeletion = std::chrono::minutes{15};
/// The rule waits so much longer where Google still counts VMs.
constexpr int kSizedPatience = 6;

struct Unneeded {
  std::string kind{};
  std::string target{};
  std::string incarnation{};  ///< another thing of the same name is another leak
  Seconds grace{};
  std::string why{};
};

class Finder {
 public:
  Finder(const Config& config, const Snapshot& shot)
      : sweeper_(config.sweeper), shot_(shot), picture_(config, shot) {
    for (const NodePicture& node : picture_.nodes()) {
      const bool is_off = node.node != nullptr && is_powered_down(*node.node);
      if (node.is_coming_up() || (is_off && !node.jobs.empty()))
        busy_.insert(config.nodesets[node.nodeset].name);
      for (const Job* job : node.jobs) jobs_.insert(job->id);
    }
  }

  std::vector<Unneeded> run() {
    for (const SweptGroup& group : shot_.groups) {
      for (const Instance& instance : group.instances) look_at(group, instance);
      for (const ResizeRequest& request : group.requests) look_at(group, request);
      look_at(group);
    }
    look_at_policies();
    look_at_reservations();
    return std::move(found_);
  }

 private:
  void add(std::string_view kind,
           std::string target,
           Seconds grace,
           std::string why,
           std::string incarnation = {}) {
    found_.push_back(
        {std::string(kind), std::move(target), std::move(incarnation), grace, std::move(why)});
  }

  void look_at(const SweptGroup& group, const Instance& instance) {
    const bool is_requested = instance.is_queued() && group.group.kind == GroupKind::Queued;
    if (is_requested) return;  // goes with its request
    const std::string why = why_unneeded(group, instance);
    if (why.empty()) return;
    const Seconds grace = sweeper_.orphan_grace;
    // Another VM of the same name is another thing.
    add("vm",
        group.group.name.text + "/" + instance.name.text +
            (instance.id.empty() ? "" : " " + instance.id),
        instance.is_leaving() ? grace + kDeletion : grace,
        why);
  }

  std::string why_unneeded(const SweptGroup& group, const Instance& instance) const {
    const NodePicture* node = picture_.find(instance.name);
    if (node == nullptr)
      return picture_.is_in_use_elsewhere(instance.name) ? "" : "no nodeset has such a node";
    if (node->node == nullptr) return "slurmctld knows no such node";
    if (!node->wants_vm()) return "its node is powered down";
    const auto is_it = [&](const Placed<Instance>& spare) {
      return spare.item == &instance && spare.group == &group;
    };
    const bool is_spare = std::any_of(node->spares.begin(), node->spares.end(), is_it);
    return is_spare && node->has_vm() ? "its node has another VM" : "";
  }

  void look_at(const SweptGroup& group, const ResizeRequest& request) {
    if (!is_our_request(request)) return;
    const std::string target = group.group.name.text + "/" + request.name.text;
    if (!request.is_active())
      return add("request", target, sweeper_.finished_request_grace, "it is finished", request.id);
    const auto is_wanted = [this](const NodeName& name) {
      const NodePicture* node = picture_.find(name);
      if (node == nullptr) return picture_.is_in_use_elsewhere(name);
      return node->wants_vm() || node->is_awaited();
    };
    if (!request.nodes.empty() &&
        std::none_of(request.nodes.begin(), request.nodes.end(), is_wanted))
      add("request", target, sweeper_.orphan_grace, "nobody wants its nodes", request.id);
  }

  void look_at(const SweptGroup& group) {
    const bool is_active = std::any_of(group.requests.begin(),
                                       group.requests.end(),
                                       [](const ResizeRequest& each) { return each.is_active(); });
    if (group.group.kind == GroupKind::Loose || !group.instances.empty() || is_active) return;
    const JobId job = described_number(group.group.description, "job");
    if (job != 0 ? jobs_.contains(job) : busy_.contains(group.nodeset)) return;
    const int patience = group.group.target_size == 0 ? 1 : kSizedPatience;
    add("group",
        group.group.name.text,
        patience * sweeper_.empty_mig_grace,
        "it is empty",
        group.group.id);
  }

  void look_at_policies() {
    std::set<std::string> used;
    for (const SweptGroup& group : shot_.groups) {
      used.insert(group.group.name.text);
      used.insert(group.group.policy);
    }
    for (const Group& group : shot_.foreign_groups) used.insert(group.policy);
    for (const Policy& policy : shot_.policies) {
      const Job* job = picture_.find_job(described_number(policy.description, "job"));
      const bool is_coming = job != nullptr && job->holds_nodes();
      if (!used.contains(policy.name) && !is_coming)
        add("policy", policy.name, sweeper_.empty_mig_grace, "no group uses it", policy.id);
    }
  }

  void look_at_reservations() {
    const auto keeps = [this](const NodeName& name) {
      const NodePicture* node = picture_.find(name);
      return node != nullptr && node->wants_vm() && node->entry;
    };
    for (const Reservation& reservation : shot_.reservations.items) {
      const auto& nodes = reservation.nodes;
      if (is_lease_reservation(reservation) && std::none_of(nodes.begin(), nodes.end(), keeps))
        add("reservation", reservation.name, Seconds{0}, "none of its VMs is left");
    }
  }

  const SweeperConfig& sweeper_;
  const Snapshot& shot_;
  Picture picture_;
  std::set<std::string> busy_{};  ///< nodesets that are about to need their groups
  std::set<JobId> jobs_{};        ///< that hold nodes: they may need their own groups
  std::vector<Unneeded> found_{};
};

}  // namespace

std::vector<Leak> LeakWatch::look(const Config& config, const Snapshot& shot) {
  std::map<std::string, TimePoint> still;
  std::vector<Leak> leaks;
  const Seconds slack = kRounds * config.sweeper.interval;
  for (Unneeded& each : Finder{config, shot}.run()) {
    const std::string key = each.kind + " " + each.target + " " + each.incarnation;
    const auto known = since_.find(key);
    const TimePoint since = known == since_.end() ? shot.now : known->second;
    still[key] = since;
    if (shot.now - since <= each.grace + slack) continue;
    leaks.push_back({.kind = std::move(each.kind),
                     .target = std::move(each.target),
                     .since = since,
                     .why = std::move(each.why)});
  }
  since_ = std::move(still);
  return leaks;
}

}  // namespace flex
