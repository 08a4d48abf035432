// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/admission.h"

#include "lib/fleet/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <tuple>

namespace flex {

namespace {

/// So many pauses pass before a job is tried again that Google has refused while it was alone.
constexpr int kPausesAlone = 4;

std::size_t count_new(const std::set<NodeName>& nodes, const std::set<NodeName>& known) {
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [&](const NodeName& node) { return !known.contains(node); }));
}

/// One pass over the asks, in their order.
class Admitter {
 public:
  explicit Admitter(const AdmissionLimits& limits)
      : limits_(limits),
        room_(limits.waiting > 0 ? 0 : room_for_requests(limits.most, limits.quota, limits.active)),
        held_(limits.waiting),
        is_full_(limits.waiting > 0),
        is_first_(limits.waiting == 0) {
    for (const auto& [index, nodeset] : limits.nodesets) {
      used_[index] = nodeset.used;
      if (nodeset.waiting > 0) blocked_.insert(index);
    }
  }

  Admission admit(const PendingAsk& ask) {
    Admission admission;
    if (look_at_nodes(ask, admission)) return admission;
    if (!ask.is_ready) return admission;
    if (!admission.full.empty()) return hold(ask, std::move(admission));
    take_slots(ask, admission);
    if (admission.verdict == AdmissionVerdict::Wait) return hold(ask, std::move(admission));
    for (const auto& [index, nodes] : ask.nodes) {
      const auto used = used_.find(index);
      if (used != used_.end()) used->second.insert(nodes.begin(), nodes.end());
    }
    return admission;
  }

 private:
  /// True if there can never be room. Nodes that are counted already need none.
  bool look_at_nodes(const PendingAsk& ask, Admission& admission) const {
    for (const auto& [index, nodes] : ask.nodes) {
      const auto found = limits_.nodesets.find(index);
      if (found == limits_.nodesets.end()) continue;
      const NodesetRoom& nodeset = found->second;
      const std::set<NodeName>& used = used_.at(index);
      const std::size_t more = count_new(nodes, used);
      if (more == 0) continue;
      const bool fits = used.size() + more <= nodeset.max_nodes;
      if (!fits) {
        if (auto why = why_never(ask, index, nodeset)) {
          admission = {.verdict = AdmissionVerdict::Never, .why = *std::move(why)};
          return true;
        }
      }
      if (fits && !blocked_.contains(index)) continue;
      admission.full.insert(index);
      if (admission.why.empty())
        admission.why =
            fmt::format("nodeset {} is at its max_nodes {}", nodeset.name, nodeset.max_nodes);
    }
    return false;
  }

  /// A job fits only beside the static nodes, which have their VMs at all times.
  static std::optional<std::string> why_never(const PendingAsk& ask,
                                              std::size_t index,
                                              const NodesetRoom& nodeset) {
    if (ask.job == 0) return std::nullopt;
    std::set<NodeName> all = ask.nodes.at(index);
    if (const auto whole = ask.whole.find(index); whole != ask.whole.end())
      all.insert(whole->second.begin(), whole->second.end());
    const std::size_t beside = count_new(nodeset.kept, all);
    if (all.size() + beside <= nodeset.max_nodes) return std::nullopt;
    return fmt::format("{} nodes are wanted of nodeset {}{}, whose max_nodes is {}",
                       all.size(),
                       nodeset.name,
                       beside == 0 ? "" : fmt::format(" beside {} of its static nodes", beside),
                       nodeset.max_nodes);
  }

  /// Slots for its requests: free ones, or those of the requests that it replaces.
  void take_slots(const PendingAsk& ask, Admission& admission) {
    admission.verdict = AdmissionVerdict::Ask;
    if (ask.requests == 0) return;
    const std::size_t in_use = limits_.active + asked_;
    if (may_take(ask, in_use)) {
      admission.is_try = limits_.quota.limit != 0 && in_use + ask.requests > limits_.quota.limit;
      if (admission.is_try) admission.why = full_region();
      take(ask.requests);
      return;
    }
    const std::size_t more = ask.requests > ask.replaces ? ask.requests - ask.replaces : 0;
    if (ask.replaces > 0 && (more == 0 || (!is_full_ && more <= room_))) {
      admission.verdict = AdmissionVerdict::Replace;
      admission.why = full_region();
      take(more);
      return;
    }
    admission.verdict = AdmissionVerdict::Wait;
    admission.waits_for_request = true;
    admission.why = full_region();
    if (ask.requests > 1)
      admission.why += fmt::format(", and its {} requests are asked for together", ask.requests);
  }

  [[nodiscard]] bool may_take(const PendingAsk& ask, std::size_t in_use) const {
    if (is_full_) return false;
    if (ask.requests <= room_) return true;
    // Google's limit may have changed: the first in line finds out, with all that it needs. What is
    // taken of it goes back if the rest is refused, so not in every round.
    const RequestQuota& quota = limits_.quota;
    const Seconds since = limits_.now - quota.learned;
    // One that needs more than there ever is begins when no other is there; seldom if Google has
    // refused that.
    if (in_use == 0)
      return !is_beyond_google(ask, in_use) || since >= kPausesAlone * limits_.probe_pause;
    return is_first_ && quota.limit != 0 && in_use + ask.requests <= limits_.most &&
           since >= limits_.probe_pause;
  }

  /// Google takes fewer requests than it needs even while no other is there: to wait for room, or
  /// behind it, is of no use.
  [[nodiscard]] bool is_beyond_google(const PendingAsk& ask, std::size_t in_use) const {
    return in_use == 0 && limits_.quota.limit != 0 && ask.requests > limits_.quota.limit;
  }

  void take(std::size_t requests) {
    room_ -= std::min(room_, requests);
    asked_ += requests;
    if (requests > 0) is_first_ = false;
  }

  /// Nobody passes it: neither for what it lacks, nor for what it would need then.
  Admission hold(const PendingAsk& ask, Admission admission) {
    admission.before = held_++;
    if (admission.waits_for_request && !is_full_)
      is_full_ = !is_beyond_google(ask, limits_.active + asked_);
    for (const auto& [index, nodes] : ask.nodes) {
      const auto used = used_.find(index);
      if (used != used_.end() && count_new(nodes, used->second) > 0) blocked_.insert(index);
    }
    return admission;
  }

  [[nodiscard]] std::string full_region() const {
    const std::size_t in_use = limits_.active + asked_;
    if (limits_.waiting > 0) return fmt::format("{} wait for their turn already", limits_.waiting);
    if (limits_.quota.limit == 0 || in_use >= limits_.most)
      return fmt::format(
          "{} of {} requests of region {} are in use", in_use, limits_.most, limits_.region);
    return fmt::format("Google takes no more requests in region {} (quota {})",
                       limits_.region,
                       kActiveRequestsQuota);
  }

  const AdmissionLimits& limits_;
  std::map<std::size_t, std::set<NodeName>> used_{};
  std::set<std::size_t> blocked_{};  ///< nodesets that somebody waits for
  std::size_t room_;                 ///< for requests
  std::size_t asked_ = 0;
  std::size_t held_;
  bool is_full_;   ///< somebody waits for room for a request
  bool is_first_;  ///< nobody has taken a slot in this pass
};

}  // namespace

bool is_before(const PendingAsk& left, const PendingAsk& right) {
  return std::tie(left.is_extra, left.since, left.job, left.first) <
         std::tie(right.is_extra, right.since, right.job, right.first);
}

std::vector<Admission> admit_requests(const std::vector<PendingAsk>& asks,
                                      const AdmissionLimits& limits) {
  std::vector<std::size_t> order(asks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return is_before(asks[left], asks[right]);
  });
  Admitter admitter{limits};
  std::vector<Admission> admissions(asks.size());
  for (const std::size_t index : order) admissions[index] = admitter.admit(asks[index]);
  return admissions;
}

std::size_t room_for_requests(std::size_t most, const RequestQuota& quota, std::size_t active) {
  const std::size_t allowed = most > active ? most - active : 0;
  if (quota.limit == 0) return allowed;
  const std::size_t freed = quota.limit > active ? quota.limit - active : 0;
  // Not both: calls go out side by side, and one too many might be taken before one that waits
  // longer.
  return std::min(allowed, freed > 0 ? freed : quota.probes);
}

void learn(RequestQuota& quota, const TurnsTaken& turns, std::size_t most) {
  const std::size_t active = turns.active + turns.taken;
  if (turns.refused > 0) {
    // None at all of ours is a limit, too: 0 would mean that there is none.
    quota = {.limit = std::max<std::size_t>(active, 1), .probes = 1, .learned = turns.now};
    return;
  }
  if (quota.limit == 0 || active <= quota.limit) return;
  quota.limit = active;
  quota.probes *= 2;
  if (quota.limit >= most || quota.probes >= most) quota = {};
}

void forget_old(RequestQuota& quota, TimePoint now) {
  constexpr Seconds kLearnedFor = std::chrono::minutes{15};
  if (quota.limit != 0 && now - quota.learned >= kLearnedFor) quota = {};
}

}  // namespace flex
