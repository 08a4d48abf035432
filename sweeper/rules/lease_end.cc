// SPDX-License-Identifier: GPL-2.0-or-later
// lease_end: every VM has a hard end. A job that would run past it must not be put on the node: a
// maintenance reservation, the fence, keeps it away, and lets jobs that fit come. The fence begins
// so much before the VM's end as slurmctld takes to end a job whose time is over (fence_lead).
//
// slurmctld tests each job against each reservation, so VMs whose fences begin at about the same
// time share one: the further away, the larger is such a bucket, a minute to six hours. It begins
// with the first of its fences, never later. About kMost reservations are made, however many VMs
// there are.
//
// A change never opens the fence: what is new or grows comes first, what shrinks or goes comes
// after it, and only if all before it was done. A sweeper that dies in between leaves too much.
//
// A node leaves its reservation as soon as it goes down: a reservation blocks the node that is
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
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

namespace flex {

namespace {

constexpr std::string_view kPrefix = "flex-eol-";
constexpr std::string_view kPattern = "YYYYMMDDTHHMM";
constexpr Seconds kMinute{60};
constexpr Seconds kQuarter{15 * 60};
/// So long after its last VM's end a reservation expires if no sweeper deletes it; and a VM that
/// has not ended by then is left to the rules about nodes.
constexpr Seconds kAfter{3600};
/// VMs of one request end within seconds of each other: that is no reason to write again.
constexpr Seconds kSlack{60};
/// With more reservations than this the buckets that are furthest away become larger.
constexpr std::size_t kMost = 50;

/// A bucket of this size begins at least so far ahead. When it is nearer, its VMs are told apart in
/// smaller ones: one that ends first must not keep short jobs off the others. Each size is a
/// multiple of the next, so the VMs of a bucket move together.
struct Level {
  Seconds size{};
  Seconds ahead{};
};

constexpr std::array<Level, 5> kLevels{{
    {std::chrono::hours{24}, std::chrono::hours{48}},
    {std::chrono::hours{12}, std::chrono::hours{24}},
    {std::chrono::hours{6}, std::chrono::hours{6}},
    {std::chrono::hours{1}, std::chrono::hours{1}},
    {kQuarter, std::chrono::minutes{5}},
}};

/// How coarse it has to be: each step makes fewer reservations.
enum class Grain {
  Fine,       ///< nodes that wait for their VMs are told apart exactly
  Normal,     ///< they are in buckets like the others; six hours at most
  HalfDays,   ///< twelve hours at most
  WholeDays,  ///< a day at most
};

constexpr std::array<Grain, 4> kGrains{
    Grain::Fine, Grain::Normal, Grain::HalfDays, Grain::WholeDays};

std::size_t first_level(Grain grain) {
  switch (grain) {
    case Grain::WholeDays:
      return 0;
    case Grain::HalfDays:
      return 1;
    case Grain::Fine:
    case Grain::Normal:
      break;
  }
  return 2;
}

TimePoint floor_to(TimePoint time, Seconds size) {
  return TimePoint{time.time_since_epoch() / size * size};
}

/// A stretch of time: fences that begin in it share a reservation.
struct Bucket {
  TimePoint begin{};
  Seconds size{};
};

Bucket bucket_of(TimePoint fence, TimePoint now, Grain grain) {
  for (std::size_t i = first_level(grain); i < kLevels.size(); ++i) {
    const TimePoint begin = floor_to(fence, kLevels[i].size);
    if (begin - now >= kLevels[i].ahead) return {.begin = begin, .size = kLevels[i].size};
  }
  return {.begin = floor_to(fence, kMinute), .size = kMinute};
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

/// The fence of one node.
struct Fence {
  const NodeName* node = nullptr;
  TimePoint begins{};
  Seconds lead{};           ///< so long before the VM's end
  bool is_to_come = false;  ///< the node waits for its VM
};

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

/// When the fence begins of a node that waits for its VM, if that came now. That moves on all the
/// time: it is told in steps of what run_duration_margin leaves, a quarter of an hour at most. So a
/// job as long as the one that the request is for still fits, and slurmctld is not written to in
/// every round.
std::optional<Fence> fence_to_come(const Round& round,
                                   const NodePicture& node,
                                   Seconds lead,
                                   VmOrigins& origins) {
  if (node.jobs.empty()) return std::nullopt;
  const auto run = run_to_come(node, origins);
  if (!run) return std::nullopt;
  const Seconds margin = round.nodeset_of(node).run_duration_margin - lead;
  const Seconds step = std::clamp(margin / kMinute * kMinute, kMinute, kQuarter);
  const TimePoint end = round.shot.now + *run;
  return Fence{
      .node = &node.name, .begins = floor_to(end - lead, step), .lead = lead, .is_to_come = true};
}

std::vector<Fence> find_fences(const Round& round) {
  std::vector<Fence> fences;
  const std::unordered_set<NodeName> shared = find_shared(round);
  VmOrigins origins(round.shot);
  const OverTimeLimits limits{round.shot};
  for (const NodePicture& node : round.picture.nodes()) {
    const Seconds lead = fence_lead(round.shot.settings, limits.of(node.name));
    const auto end = end_of(round, node);
    if (end && *end + kAfter > round.shot.now)
      fences.push_back({.node = &node.name, .begins = *end - lead, .lead = lead});
    if (end || !shared.contains(node.name)) continue;
    if (const auto later = fence_to_come(round, node, lead, origins)) fences.push_back(*later);
  }
  return fences;
}

using Reservations = std::map<std::string, Reservation>;  ///< by name

Reservations put_together(const std::vector<Fence>& fences, TimePoint now, Grain grain) {
  Reservations wanted;
  for (const Fence& fence : fences) {
    const bool is_exact = fence.is_to_come && grain == Grain::Fine;
    const Bucket bucket = is_exact ? Bucket{.begin = fence.begins, .size = kQuarter}
                                   : bucket_of(fence.begins, now, grain);
    Reservation& reservation = wanted[name_of(bucket.begin)];
    const TimePoint begins = floor_to(fence.begins, kMinute);
    if (reservation.nodes.empty() || begins < reservation.start) reservation.start = begins;
    // The VMs that come to this bucket later end a lead after its end at most.
    const TimePoint expires = bucket.begin + bucket.size + fence.lead + kAfter;
    reservation.end = std::max(reservation.end, floor_to(expires, kMinute));
    reservation.nodes.push_back(*fence.node);
  }
  for (auto& [name, reservation] : wanted) {
    reservation.name = name;
    reservation.is_maintenance = true;
    reservation.ignores_jobs = true;
    // slurmctld makes none that begins in the past.
    reservation.start = std::max(reservation.start, now);
  }
  return wanted;
}

Reservations find_wanted(const Round& round) {
  const std::vector<Fence> fences = find_fences(round);
  Reservations wanted;
  for (const Grain grain : kGrains) {
    wanted = put_together(fences, round.shot.now, grain);
    if (wanted.size() <= kMost) break;
  }
  return wanted;
}

std::vector<NodeName> sorted(std::vector<NodeName> nodes) {
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

std::vector<NodeName> join(const std::vector<NodeName>& some, const std::vector<NodeName>& others) {
  std::vector<NodeName> all;
  const std::vector<NodeName> left = sorted(some);
  const std::vector<NodeName> right = sorted(others);
  std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(all));
  return all;
}

bool has_begun(const Reservation& reservation, TimePoint now) {
  return reservation.start <= now;
}

void set(Round& round, const Reservation& wanted, bool is_new, bool is_smaller) {
  std::string why = "other VMs end at this time";
  if (is_new) why = "jobs that would run past the end of these VMs stay away";
  if (is_smaller) why = "it is for the VMs that are left, and for no longer than they need";
  round.add(Rule::LeaseEnd,
            std::move(why),
            SetReservation{.reservation = wanted, .is_new = is_new, .is_smaller = is_smaller});
}

/// All that it was and all that it is to be, if that is more than it was.
void grow(Round& round, const Reservation& wanted, const Reservation& there) {
  Reservation both = wanted;
  both.nodes = join(wanted.nodes, there.nodes);
  both.start = std::min(wanted.start, there.start);
  both.end = std::max(wanted.end, there.end);
  const bool is_late = there.start > wanted.start && !has_begun(there, round.shot.now);
  if (both.nodes.size() == there.nodes.size() && !is_late && there.end >= wanted.end) return;
  set(round, both, false, false);
}

void shrink(Round& round, const Reservation& wanted, const Reservation& there) {
  const bool has_more = join(wanted.nodes, there.nodes).size() > wanted.nodes.size();
  const bool is_early = !has_begun(there, round.shot.now) && wanted.start - there.start >= kSlack;
  if (has_more || is_early) set(round, wanted, false, true);
}

/// slurmctld does not change the start of one that has begun: another must take its place.
bool is_stuck(const Reservation& wanted, const Reservation& there, TimePoint now) {
  return has_begun(there, now) && wanted.start - now >= kSlack;
}

/// For one round: in the next, the name that it should have is free.
std::string free_name(const Reservations& wanted,
                      const std::map<std::string, const Reservation*>& ours,
                      TimePoint near) {
  std::string name = name_of(near);
  while (wanted.contains(name) || ours.contains(name)) name = name_of(near += kMinute);
  return name;
}

void remove(Round& round, const Reservation& there, std::string why) {
  round.add(Rule::LeaseEnd, std::move(why), DeleteReservation{.name = there.name});
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
  Reservations wanted = find_wanted(round);
  std::map<std::string, const Reservation*> ours;
  for (const Reservation& there : round.shot.reservations.items) {
    if (is_lease_reservation(there)) ours[there.name] = &there;
  }
  const auto counterpart = [&](const std::string& name) {
    const auto found = ours.find(name);
    return found == ours.end() ? nullptr : found->second;
  };
  for (const auto& [name, reservation] : wanted) {
    const Reservation* const there = counterpart(name);
    if (there == nullptr) {
      set(round, reservation, true, false);
    } else if (is_stuck(reservation, *there, round.shot.now)) {
      Reservation other = reservation;
      other.name = free_name(wanted, ours, reservation.start);
      set(round, other, true, false);
    } else {
      grow(round, reservation, *there);
    }
  }
  for (const auto& [name, there] : ours) {
    const auto found = wanted.find(name);
    if (found == wanted.end())
      remove(round, *there, "its VMs are gone, or others have taken its place");
    else if (is_stuck(found->second, *there, round.shot.now))
      remove(round, *there, "it has begun and is made anew for the VMs that are left");
    else
      shrink(round, found->second, *there);
  }
}

}  // namespace flex
