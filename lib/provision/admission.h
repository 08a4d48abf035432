// SPDX-License-Identifier: GPL-2.0-or-later
// Admission: who may ask Google for what now. A region takes only so many requests at once, and a
// nodeset has at most max_nodes VMs. Who has waited longest comes first, a job's requests are
// asked for all together or not at all, and a request that replaces another needs no slot of its
// own. flex-resume, the sweeper and flexctl plan decide with this one function (pure).
#pragma once

#include "lib/core/domain.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace flex {

/// Google's quota of active requests, where it is less than the config says or others use it, too.
struct RequestQuota {
  std::size_t limit = 0;   ///< so many of ours there were when it was full; 0: it is not
  std::size_t probes = 1;  ///< so many more are tried in a round
  TimePoint learned{};     ///< when Google last refused one
};

/// What somebody wants to ask for: all of it, or nothing.
struct PendingAsk {
  JobId job = 0;     ///< 0: none
  NodeName first{};  ///< the first of its nodes, so that the order is always the same
  TimePoint since{};
  /// What it asks for, by the index of the nodeset. Nodesets without max_nodes may be left out.
  std::map<std::size_t, std::set<NodeName>> nodes{};
  /// All nodes that its job has in those nodesets, those that have a VM among them.
  std::map<std::size_t, std::set<NodeName>> whole{};
  std::size_t requests = 0;  ///< that count for the quota
  std::size_t replaces = 0;  ///< active requests that it may cancel, to use their slots
  bool is_ready = true;      ///< false: it is not asked for now, whatever room there is
  bool is_extra = false;     ///< a request is out already: those without one come first
};

/// Longest waiting first; equal ones by job, so that the order does not change from round to round.
[[nodiscard]] bool is_before(const PendingAsk& left, const PendingAsk& right);

/// A nodeset with max_nodes.
struct NodesetRoom {
  std::string name{};
  std::size_t max_nodes = 0;
  std::set<NodeName> used{};  ///< have a VM, or are asked for
  std::set<NodeName> kept{};  ///< static nodes: they have a VM at all times
  std::size_t waiting = 0;    ///< others who wait for room and are not among the asks
};

struct AdmissionLimits {
  std::string region{};
  std::size_t most = 0;    ///< api.max_active_requests
  std::size_t active = 0;  ///< requests that count for it now
  RequestQuota quota{};    ///< what is known of Google's own limit
  TimePoint now{};
  Seconds probe_pause{0};   ///< so long after a refusal several requests are tried again
  std::size_t waiting = 0;  ///< others who wait for room for a request and are not among the asks
  std::map<std::size_t, NodesetRoom> nodesets{};  ///< those with max_nodes, by index
};

enum class AdmissionVerdict {
  Ask,
  Replace,  ///< cancel what it replaces first: there is no other room
  Wait,
  Never,  ///< there will never be room: nobody stands behind it
};

struct Admission {
  AdmissionVerdict verdict = AdmissionVerdict::Wait;
  bool is_try = false;             ///< Google took no more than that when it was last asked
  bool waits_for_request = false;  ///< Wait: for room for its requests
  std::set<std::size_t> full{};    ///< Wait: for room in these nodesets
  std::string why{};               ///< Wait, Never: the reason
  std::size_t before = 0;          ///< Wait: so many wait longer
};

/// One for each ask, in the order of `asks`.
[[nodiscard]] std::vector<Admission> admit_requests(const std::vector<PendingAsk>& asks,
                                                    const AdmissionLimits& limits);

/// How many requests may be made now: what the config allows beside the `active` ones. Where Google
/// has refused one before that: as many as have become free since; if none has, a few to find out.
[[nodiscard]] std::size_t room_for_requests(std::size_t most,
                                            const RequestQuota& quota,
                                            std::size_t active);

/// What became of a round's requests.
struct TurnsTaken {
  std::size_t active = 0;   ///< before
  std::size_t taken = 0;    ///< by Google
  std::size_t refused = 0;  ///< because too many are active
  TimePoint now{};
};

/// After a refusal there is room for no more than there are now. From then on one more is tried,
/// and where that is taken two, four, … until the next refusal: others may have left the region.
void learn(RequestQuota& quota, const TurnsTaken& turns, std::size_t most);

/// What was learned counts for a quarter of an hour after the last refusal.
void forget_old(RequestQuota& quota, TimePoint now);

}  // namespace flex
