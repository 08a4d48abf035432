// SPDX-License-Identifier: GPL-2.0-or-later
// no_longer_eligible: slurmctld tests a job when it gives it nodes, and never again. A job that
// waits for VMs has its nodes for days, though it has not begun. What has come in its way meanwhile
// is tested here: a reservation of others on its nodes, its --deadline, its partition's state,
// accounts, QOS and limits, what the accounting allows (accounting_limits.h). Such a job is given
// back before a VM is bought: the request is cancelled, the job goes back to the queue, where
// slurmctld keeps or ends it for its own reason; one that cannot be requeued is cancelled.
// docs/ARCHITECTURE.md has the list of all that slurmctld tests.
//
// slurmctld knows more than this rule does. If it gives a job nodes again though what it was given
// back for is still so, that is overlooked: no job goes back and forth.
#include "lib/core/job_note.h"
#include "sweeper/accounting_limits.h"
#include "sweeper/lease.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace flex {

namespace {

/// Slurm compares such names without regard to case.
bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& each) {
    return std::equal(each.begin(), each.end(), name.begin(), name.end(), [](char a, char b) {
      return std::tolower(static_cast<unsigned char>(a)) ==
             std::tolower(static_cast<unsigned char>(b));
    });
  });
}

const Partition* partition_of(const Round& round, const Job& job) {
  const auto& all = round.shot.partitions.items;
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const Partition& each) { return each.name == job.partition; });
  return found == all.end() ? nullptr : &*found;
}

/// What the job's own reservations say about others on the same nodes.
struct Own {
  bool is_any = false;          ///< it has one
  bool is_maintenance = false;  ///< none of the others counts
  bool may_overlap = false;     ///< only maintenance does
};

/// Reservations by node.
class Reserved {
 public:
  explicit Reserved(const Round& round) : round_(round) {
    for (const Reservation& reservation : round.shot.reservations.items) {
      if (is_lease_reservation(reservation) || reservation.end <= round.shot.now) continue;
      by_name_.emplace(reservation.name, &reservation);
      for (const NodeName& node : reservation.nodes) by_node_[node].push_back(&reservation);
    }
  }

  /// The first that the job would reach into if it began now.
  [[nodiscard]] const Reservation* in_the_way(const Job& job, TimePoint now) const {
    const Reservation* first = nullptr;
    const Own own = own_of(job);
    if (own.is_maintenance) return nullptr;
    const Partition* const partition = partition_of(round_, job);
    // One of some cores leaves the rest to others, if the job takes less than the node; in a
    // reservation of its own it is not tested at all.
    const bool takes_whole_nodes = partition != nullptr && partition->is_exclusive && !own.is_any;
    for (const NodeName& node : job.nodes) {
      const auto found = by_node_.find(node);
      if (found == by_node_.end()) continue;
      for (const Reservation* each : found->second) {
        if (is_its_own(job, *each) || (each->is_partial && !takes_whole_nodes)) continue;
        if (own.may_overlap && !each->is_maintenance) continue;
        const bool is_reached = !job.time_limit || each->start < now + *job.time_limit;
        if (is_reached && (first == nullptr || each->start < first->start)) first = each;
      }
    }
    return first;
  }

 private:
  /// `reservation` of a job may name several, with commas.
  static bool is_its_own(const Job& job, const Reservation& reservation) {
    std::string_view rest = job.reservation;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (rest.substr(0, comma) == reservation.name) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return false;
  }

  /// Of several names slurmctld has taken one and does not say which: the most lenient.
  [[nodiscard]] Own own_of(const Job& job) const {
    Own own{.is_any = !job.reservation.empty()};
    if (!own.is_any) return own;
    bool is_known = false;
    for (const auto& [name, reservation] : by_name_) {
      if (!is_its_own(job, *reservation)) continue;
      is_known = true;
      own.is_maintenance = own.is_maintenance || reservation->is_maintenance;
      own.may_overlap = own.may_overlap || reservation->may_overlap;
    }
    // One that is gone or over is slurmctld's matter: it ends the job with it.
    if (!is_known) own.is_maintenance = true;
    return own;
  }

  const Round& round_;
  std::unordered_map<std::string_view, const Reservation*> by_name_{};
  std::unordered_map<NodeName, std::vector<const Reservation*>> by_node_{};
};

/// A list that allows has precedence over one that denies.
bool is_allowed(const std::vector<std::string>& allowed,
                const std::vector<std::string>& denied,
                std::string_view name) {
  return allowed.empty() ? !contains(denied, name) : contains(allowed, name);
}

void add_partition(const Round& round, const Job& job, std::vector<Obstacle>& found) {
  const Partition* const partition = partition_of(round, job);
  if (partition == nullptr) return;
  const auto add = [&](std::string_view key, std::string why, bool is_guess) {
    found.push_back({.key = fmt::format("{} of {}", key, job.partition),
                     .why = std::move(why),
                     .is_guess = is_guess});
  };
  if (!partition->starts_jobs)
    add("state", fmt::format("partition {} is down or inactive", job.partition), false);
  if (!job.account.empty() &&
      !is_allowed(partition->allow_accounts, partition->deny_accounts, job.account))
    add("account",
        fmt::format("partition {} is closed to account {}", job.partition, job.account),
        true);
  if (!job.qos.empty() && !is_allowed(partition->allow_qos, partition->deny_qos, job.qos))
    add("qos", fmt::format("partition {} is closed to QOS {}", job.partition, job.qos), true);
  const auto add_limit = [&](std::string_view limit) {
    add(limit, fmt::format("it is outside of {} of partition {}", limit, job.partition), true);
  };
  const Qos* const qos =
      round.shot.accounting ? find_qos(*round.shot.accounting, job.qos) : nullptr;
  const bool is_too_long =
      partition->max_time && (!job.time_limit || least_time(job) > *partition->max_time);
  if (is_too_long && !(qos != nullptr && qos->ignores_partition_time)) add_limit("MaxTime");
  if (partition->max_nodes && job.nodes.size() > *partition->max_nodes &&
      !(qos != nullptr && qos->ignores_partition_max_nodes))
    add_limit("MaxNodes");
  if (job.nodes.size() < partition->min_nodes &&
      !(qos != nullptr && qos->ignores_partition_min_nodes))
    add_limit("MinNodes");
}

void add_accounting(const Round& round, const Job& job, std::vector<Obstacle>& found) {
  if (!round.shot.accounting) return;
  const Partition* const partition = partition_of(round, job);
  auto more = accounting_obstacles(*round.shot.accounting,
                                   round.shot.settings.enforced,
                                   job,
                                   partition == nullptr ? std::string{} : partition->qos);
  found.insert(
      found.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<Obstacle> obstacles_of(const Round& round, const Reserved& reserved, const Job& job) {
  std::vector<Obstacle> found;
  const TimePoint now = round.shot.now;
  if (const Reservation* other = reserved.in_the_way(job, now); other != nullptr)
    found.push_back({.key = "reservation " + other->name,
                     .why = fmt::format("reservation {} has its nodes from {} to {}",
                                        other->name,
                                        local_time(other->start),
                                        local_time(other->end))});
  if (job.deadline && now + least_time(job) > *job.deadline)
    found.push_back(
        {.key = "deadline",
         .why = fmt::format("it cannot end before its deadline {}", local_time(*job.deadline))});
  add_partition(round, job, found);
  add_accounting(round, job, found);
  return found;
}

/// No VM of it has been bought, or is being bought: it waits for one at least, and all requests for
/// its nodes can still be cancelled.
bool waits_for_vms(const Round& round, const Job& job) {
  if (!job.holds_nodes() || !job.is_configuring) return false;
  bool is_waiting = false;
  for (const NodeName& name : job.nodes) {
    const NodePicture* node = round.picture.find(name);
    if (node == nullptr || !lacks_vm(*node)) continue;
    if (!round.is_free(name) || node->is_bulk_pending) return false;
    for (const Placed<ResizeRequest>& request : node->requests) {
      if (request->state != RequestState::Accepted || !round.is_free(*request.group, *request))
        return false;
    }
    is_waiting = true;
  }
  return is_waiting;
}

/// The first obstacle that counts and was there in the last round, too. One is enough: if it is
/// gone when the job comes back, it has cost it a place, but it would not have started.
std::optional<Obstacle> due_obstacle(Round& round, const Reserved& reserved, const Job& job) {
  const auto [found, is_first] = round.memory.eligibility.try_emplace(job.id);
  Eligibility& known = found->second;
  const bool is_new = is_first || known.restart_count != job.restart_count;
  if (is_new) known.overlooked.clear();
  known.restart_count = job.restart_count;
  // A limit that an admin has just raised beyond others, or what the accounting says when it comes
  // late, has not changed slurmctld's mind.
  const std::string judged = fmt::format("{} {}",
                                         job.time_limit ? job.time_limit->count() : 0,
                                         round.shot.accounting ? "accounting" : "");
  const bool is_rejudged = is_new || known.judged != judged;
  known.judged = judged;
  std::optional<Obstacle> due;
  for (Obstacle& obstacle : obstacles_of(round, reserved, job)) {
    const bool was_there = is_new && known.given_back.contains(obstacle.key);
    if (was_there || (is_rejudged && obstacle.is_guess)) known.overlooked.insert(obstacle.key);
    if (known.overlooked.contains(obstacle.key)) continue;
    const std::string key = fmt::format("job {} {} {}", job.id, job.restart_count, obstacle.key);
    const bool is_twice = round.see(Rule::NoLongerEligible, key).is_twice();
    if (is_twice && !due) due = std::move(obstacle);
  }
  return due;
}

struct Leaving {
  const Job* job = nullptr;
  Obstacle obstacle{};
};

/// The requests that only these jobs wait for. Each once.
std::vector<Placed<ResizeRequest>> requests_for(const Round& round,
                                                const Job& job,
                                                const std::vector<const Job*>& leaving) {
  std::vector<Placed<ResizeRequest>> found;
  for (const Placed<ResizeRequest>& request : queued_requests(round)) {
    const std::vector<const Job*> jobs = jobs_on(round.picture, request->nodes);
    const bool is_its = std::find(jobs.begin(), jobs.end(), &job) != jobs.end();
    const bool stays = std::any_of(jobs.begin(), jobs.end(), [&](const Job* on) {
      return std::find(leaving.begin(), leaving.end(), on) == leaving.end();
    });
    if (is_its && !stays && !is_for_static_nodes(round, *request)) found.push_back(request);
  }
  return found;
}

void give_back(Round& round, const Leaving& leaving, const std::vector<const Job*>& all) {
  const Job& job = *leaving.job;
  const std::string& why = leaving.obstacle.why;
  const auto requests = requests_for(round, job, all);
  if (round.spend(requests.size()) < requests.size()) return;
  round.memory.eligibility[job.id].given_back.insert(leaving.obstacle.key);
  for (const Placed<ResizeRequest>& request : requests)
    cancel_request(round, Rule::NoLongerEligible, why, request);
  const TimeoutOutcome fate =
      job.is_batch && job.may_requeue ? TimeoutOutcome::Requeued : TimeoutOutcome::Cancelled;
  tell_all_parts(round, Rule::NoLongerEligible, why, job, note_not_eligible(why, fate));
  std::vector<NodeName> going = nodes_given_up(round, job, all);
  round.claim(going);
  send_away(round, Rule::NoLongerEligible, why, job, fate, going);
  if (going.empty()) return;
  round.add(Rule::NoLongerEligible,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(going),
                        .reason = "flex: " + why});
}

}  // namespace

void no_longer_eligible(Round& round) {
  const Reserved reserved{round};
  std::vector<Leaving> leaving;
  std::vector<const Job*> jobs;
  for (const Job& job : round.shot.jobs.items) {
    if (!waits_for_vms(round, job) || round.is_told(job.id)) continue;
    if (auto obstacle = due_obstacle(round, reserved, job)) {
      leaving.push_back({.job = &job, .obstacle = std::move(*obstacle)});
      jobs.push_back(&job);
    }
  }
  for (const Leaving& each : leaving) give_back(round, each, jobs);
}

}  // namespace flex
