// SPDX-License-Identifier: GPL-2.0-or-later
// What the sweeper knows from earlier rounds: when it first saw something, and how often. Kept in a
// file between runs; losing it costs time, nothing else.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/provision/admission.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace flex {

/// Something that looked wrong in each of the last `count` rounds.
struct Sighting {
  TimePoint first{};
  TimePoint last{};
  std::uint32_t count = 0;
  std::uint64_t round = 0;  ///< the last one in which it was seen

  [[nodiscard]] bool is_twice() const { return count >= 2; }

  [[nodiscard]] Seconds age() const { return last - first; }
};

/// Trouble in getting VMs for a node, or for those that are asked for together with it.
struct RetryState {
  std::uint32_t attempts = 0;  ///< requests that failed
  std::uint32_t refusals = 0;  ///< requests that were not even taken
  TimePoint next{};            ///< not before this
  std::string why{};
  JobId job = 0;  ///< who waits; 0: no job, or not known
};

/// A nodeset that the breaker or an admin has stopped.
struct Stopped {
  std::string why{};
  /// By us, while they were off: when one of them is undrained, an admin has cleared it.
  std::set<NodeName> drained{};
  bool is_clearing = false;  ///< until none is drained by us any more
  bool is_paused = false;    ///< by an admin's pause, as long as that stands
};

/// Boots that failed, of a nodeset.
struct BootFailures {
  std::uint32_t count = 0;  ///< in a row
  TimePoint last{};
  /// Nodes whose registration slurmctld has refused, and which have not come up since. Others of
  /// the nodeset that come up prove nothing for them.
  std::set<NodeName> refused{};
  /// The VMs (ids) of the nodeset that were there when the last refusal was counted: what is
  /// refused of them is part of the same failure.
  std::set<std::string> counted{};
};

/// A node that comes up, or has come up.
struct Boot {
  std::vector<JobId> jobs{};  ///< that it came up for
  std::string vm{};           ///< the VM (its id) that slurmctld has taken the registration of
};

/// When the VM of a node ends.
struct LeaseEnd {
  TimePoint ends{};
  std::string vm{};  ///< its id
};

/// How far the nodes of a job in a nodeset have come in on_stockout, or a static node.
struct StockoutState {
  std::size_t step = 0;
  TimePoint since{};         ///< when what this step says was asked for
  std::uint64_t round = 0;   ///< the last in which they waited
  bool is_asked = false;     ///< else nothing of this step has been asked for, and no time counts
  bool is_shut = false;      ///< its ways are shut, as was seen in the last round
  bool is_hopeless = false;  ///< the zones of the one before can never serve it
};

/// Of a way that is not tried again as long as the same wait lasts.
inline constexpr TimePoint kNotThisWait = TimePoint::max();

/// A group in which nothing is asked for now, for those who wait.
struct ShutWay {
  std::uint32_t failures = 0;  ///< of requests there, while others went on
  TimePoint next{};            ///< not before this
  std::string why{};
};

/// The ways that are shut for a job in a nodeset, or for a node without a job.
struct ShutWays {
  std::uint32_t restart_count = 0;  ///< in which of the job's lives
  std::map<MigName, ShutWay> ways{};
};

/// A job that was told that its VMs end.
struct Warned {
  TimePoint ends{};
  std::uint32_t restart_count = 0;  ///< in which of its lives
};

/// New VMs that a node got because it was drained for one of repair_reasons.
struct Repairs {
  std::vector<TimePoint> times{};  ///< of the last day, oldest first
  std::string reason{};            ///< of the last one
  std::string vm{};                ///< the id of the VM that was given up last
  bool is_under_way = false;       ///< until the node is off and no longer drained
  bool has_given_up = false;       ///< there were too many: it stays drained
};

/// What is looked up for every node in every round.
template <class What>
using ByNode = std::unordered_map<NodeName, What>;

/// What seems to keep a job from running, by no_longer_eligible.
struct Eligibility {
  std::uint32_t restart_count = 0;     ///< the life that `overlooked` is about
  std::set<std::string> overlooked{};  ///< slurmctld gave it nodes in spite of these
  std::set<std::string> given_back{};  ///< for these it has lost its nodes before
  std::string judged{};                ///< what guesses went by: the time limit, the accounting
};

struct Memory {
  std::uint64_t round = 0;                      ///< the number of the present one
  TimePoint last_round{};                       ///< of the last complete one; 0: none
  std::map<std::string, Sighting> sightings{};  ///< "rule key"
  std::map<NodeName, RetryState> retries{};     ///< by the first node of a request
  std::map<NodeName, RetryState> raised{};      ///< static nodes powered up without success so far
  ByNode<TimePoint> armed{};                    ///< when slurmctld began to count ResumeTimeout
  ByNode<LeaseEnd> lease_ends{};                ///< of the VM seen last
  ByNode<Boot> boots{};                         ///< of nodes that are up or come up
  std::map<NodeName, std::string> drains{};     ///< an admin's, which powering down takes away
  /// They come up, or will, because of a job or of a flag that was left over, not for an admin.
  std::unordered_set<NodeName> woken{};
  std::map<NodeName, RetryState> cured{};               ///< by unusable_node
  std::map<std::string, BootFailures> boot_failures{};  ///< by nodeset
  std::map<std::string, Stopped> stopped{};             ///< by nodeset
  std::map<std::string, StockoutState> stockouts{};     ///< by waiter_of()
  std::map<std::string, ShutWays> shut{};               ///< by waiter_of()
  std::set<std::string> heeded{};  ///< requests that an admin has cancelled, and that are in `shut`
  RequestQuota requests{};
  std::map<JobId, TimePoint> notes{};  ///< when a job's comment was last written
  std::map<JobId, Warned> warned{};
  std::map<JobId, Eligibility> eligibility{};  ///< of jobs that waited for VMs
  ByNode<std::string> worked{};                ///< the VM (its id) on which it has had a job
  std::map<NodeName, Repairs> repairs{};
  std::set<std::string> loose{};  ///< nodesets that had VMs in no group
  bool has_policies = false;      ///< there were some of ours
  TimePoint remains_looked{};     ///< when what an earlier config may have left was looked for

  /// One more sighting, if it is the round's first of this. A gap of more than `longest_gap` since
  /// the last one starts anew.
  const Sighting& see(std::string_view rule, std::string_view key, TimePoint now);
  /// Null if it was not seen in the last round.
  [[nodiscard]] const Sighting* find(std::string_view rule, std::string_view key) const;
  /// Drops what was not seen in this round: to be called at its end.
  void forget_unseen();

  Seconds longest_gap{600};
};

/// JSON; never fails.
[[nodiscard]] std::string to_text(const Memory& memory);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<Memory> parse_memory(std::string_view text);

}  // namespace flex
