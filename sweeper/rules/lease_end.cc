// SPDX-License-Identifier: GPL-2.0-or-later
// lease_end: every VM has a hard end. A job that would run past it must not be put on the node: a
// maintenance reservation from then on keeps it away, and lets jobs that fit come. One reservation
// for all VMs that end in the same quarter of an hour, because slurmctld tests each job against
// each reservation. A node leaves it as soon as it goes down: a reservation blocks the node that is
// powered down just as well, and the next VM has another end. A node that waits for its VM, and
// that jobs may share, is fenced in the same way, from the end that its request implies; also while
// the VM is there and does not say yet when it ends.
#include "lib/core/duration.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/lease.h"
#include "sweeper/rules.h"
#include "sweeper/vm_origins.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_set>

namespace flex {

namespace {

constexpr std::string_view kPrefix = "flex-eol-";
constexpr std::string_view kPattern = "YYYYMMDDTHHMM";
constexpr Seconds kBucket{15 * 60};
/// Nearer than this the minute counts: a VM that ends first must not keep short jobs off the
/// others.
constexpr Seconds kNear{30 * 60};
constexpr Seconds kMinute{60};
/// So long after its quarter of an hour a reservation expires if no sweeper deletes it; and a VM
/// that has not ended by then is left to the rules about nodes.
constexpr Seconds kAfter{3600};
/// VMs of one request end within seconds of each other: that is no reason to write again.
constexpr Seconds kSlack{60};

TimePoint bucket_of(TimePoint end, TimePoint now) {
  const Seconds size = end - now < kNear ? kMinute : kBucket;
  return TimePoint{end.time_since_epoch() / size * size};
}

std::string name_of(TimePoint bucket) {
  return fmt::format("{}{:%Y%m%dT%H%M}", kPrefix, fmt::gmtime(bucket.time_since_epoch().count()));
}

/// When the VM behind the node ends, if jobs must be told apart by it: not for a node that goes
/// down or is off. While the VM stops, and as long as slurmctld takes the node for up though it is
/// gone, no job may come either.
std::optional<TimePoint> end_of(const Round& round, const NodePicture& node) {
  if (!node.wants_vm()) return std::nullopt;
  const bool is_there = node.entry && !node.entry->is_dead() && !node.entry->is_queued();
  if (is_there) return node.entry->terminates;
  const auto last = round.memory.lease_ends.find(node.name);
  if (!is_up(*node.node) || last == round.memory.lease_ends.end()) return std::nullopt;
  return last->second.ends;
}

/// Nodes that jobs may share.
std::unordered_set<NodeName> find_shared(const Round& round) {
  std::unordered_set<NodeName> shared;
  for (const Partition& partition : round.shot.partitions.items) {
    if (!partition.is_exclusive) shared.insert(partition.nodes.begin(), partition.nodes.end());
  }
  return shared;
}

/// How long the VM lives that the node waits for, or that has come and does not say yet when it
/// ends.
std::optional<Seconds> run_to_come(const NodePicture& node, VmOrigins& origins) {
  if (node.has_vm()) {
    const ResizeRequest* const made = origins.find(*node.entry.group, node.name);
    if (made == nullptr || made->run_duration == Seconds{0}) return std::nullopt;
    return made->run_duration;
  }
  if (!lacks_vm(node)) return std::nullopt;
  std::optional<Seconds> run;
  for (const Placed<ResizeRequest>& request : node.requests) {
    if (!is_our_request(*request) || request->run_duration == Seconds{0}) continue;
    // The longest: a request that is too short is about to be replaced.
    run = std::max(run.value_or(Seconds{0}), request->run_duration);
  }
  return run;
}

/// When that VM ends, if it came now. That moves on all the time: it is told
/// in steps of run_duration_margin, a quarter of an hour at most. So a job as long as the one that
/// the request is for still fits, and slurmctld is not written to in every round.
std::optional<TimePoint> end_to_come(const Round& round,
                                     const NodePicture& node,
                                     VmOrigins& origins) {
  if (node.jobs.empty()) return std::nullopt;
  const auto run = run_to_come(node, origins);
  if (!run) return std::nullopt;
  const Seconds margin = round.nodeset_of(node).run_duration_margin;
  const Seconds step = std::clamp(margin / kMinute * kMinute, kMinute, kBucket);
  const Seconds end = (round.shot.now + *run).time_since_epoch();
  return TimePoint{end / step * step};
}

void add_end(std::map<std::string, Reservation>& wanted,
             const NodeName& node,
             TimePoint end,
             TimePoint bucket) {
  Reservation& reservation = wanted[name_of(bucket)];
  if (reservation.nodes.empty() || end < reservation.start) reservation.start = end;
  reservation.end = bucket + kBucket + kAfter;
  reservation.nodes.push_back(node);
}

/// By name.
std::map<std::string, Reservation> find_wanted(const Round& round) {
  std::map<std::string, Reservation> wanted;
  const std::unordered_set<NodeName> shared = find_shared(round);
  VmOrigins origins(round.shot);
  for (const NodePicture& node : round.picture.nodes()) {
    const auto end = end_of(round, node);
    if (end && *end + kAfter > round.shot.now)
      add_end(wanted, node.name, *end, bucket_of(*end, round.shot.now));
    if (end || !shared.contains(node.name)) continue;
    if (const auto later = end_to_come(round, node, origins))
      add_end(wanted, node.name, *later, *later);
  }
  for (auto& [name, reservation] : wanted) {
    reservation.name = name;
    reservation.is_maintenance = true;
    reservation.ignores_jobs = true;
    // slurmctld makes none that begins in the past.
    reservation.start = std::max(reservation.start, round.shot.now);
  }
  return wanted;
}

std::vector<NodeName> sorted(std::vector<NodeName> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

bool has_same_nodes(const Reservation& wanted, const Reservation& there) {
  return sorted(wanted.nodes) == sorted(there.nodes);
}

bool begins_in_time(const Reservation& wanted, const Reservation& there, TimePoint now) {
  const bool is_now = wanted.start <= now;
  return there.start <= wanted.start && (is_now || wanted.start - there.start < kSlack);
}

void set(Round& round, const Reservation& wanted, bool is_new) {
  round.add(Rule::LeaseEnd,
            is_new ? "jobs that would run past the end of these VMs stay away"
                   : "other VMs end at this time",
            SetReservation{.reservation = wanted, .is_new = is_new});
}

void mend(Round& round, const Reservation& wanted, const Reservation& there) {
  if (has_same_nodes(wanted, there) && begins_in_time(wanted, there, round.shot.now)) return;
  if (there.start > round.shot.now) return set(round, wanted, false);
  // The start of one that has begun cannot be changed.
  round.add(Rule::LeaseEnd,
            "it has begun and is made anew for the VMs that are left",
            DeleteReservation{.name = wanted.name});
  set(round, wanted, true);
}

}  // namespace

/// By its name, which must be exactly one that name_of() makes, and as only we make them.
bool is_lease_reservation(const Reservation& reservation) {
  const std::string_view name = reservation.name;
  if (!name.starts_with(kPrefix) || !reservation.is_maintenance || !reservation.ignores_jobs)
    return false;
  const std::string_view stamp = name.substr(kPrefix.size());
  if (stamp.size() != kPattern.size()) return false;
  const auto time = parse_time(fmt::format("{}-{}-{}{}:{}:00Z",
                                           stamp.substr(0, 4),
                                           stamp.substr(4, 2),
                                           stamp.substr(6, 2),
                                           stamp.substr(8, 3),
                                           stamp.substr(11)));
  return time && name_of(*time) == name;
}

void lease_end(Round& round) {
  std::map<std::string, Reservation> wanted = find_wanted(round);
  for (const Reservation& there : round.shot.reservations.items) {
    if (!is_lease_reservation(there)) continue;
    const auto found = wanted.find(there.name);
    if (found == wanted.end()) {
      round.add(Rule::LeaseEnd, "none of its VMs is left", DeleteReservation{.name = there.name});
      continue;
    }
    mend(round, found->second, there);
    wanted.erase(found);
  }
  for (const auto& [name, reservation] : wanted) set(round, reservation, true);
}

}  // namespace flex
