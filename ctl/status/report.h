// SPDX-License-Identifier: GPL-2.0-or-later
// What the sweeper's status.json says, as far as flexctl status shows it (pure). A member that is
// not there (another release wrote the file) is empty, never an error.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct NodesByState {
  std::string word{};
  std::size_t count = 0;
  std::string nodes{};  ///< folded
};

struct NodesetReport {
  std::string name{};
  std::string mode{};
  std::size_t nodes = 0;
  std::size_t static_nodes = 0;
  std::size_t vms = 0;
  std::size_t jobs_waiting = 0;
  std::size_t jobs_running = 0;
  TimePoint next_end{};
  std::string stopped{};  ///< by the breaker, why; empty: it is not
  std::string paused{};   ///< by whom and why; empty: it is not
  std::vector<NodesByState> states{};
};

struct RequestReport {
  std::string name{};
  std::string group{};
  std::string nodeset{};
  std::string state{};
  JobId job = 0;
  std::uint64_t attempt = 1;
  std::string nodes{};
  std::size_t count = 0;
  TimePoint created{};
  TimePoint gives_up{};
  TimePoint retry_at{};
  std::string reason{};
  std::string message{};
  TimePoint estimate{};

  [[nodiscard]] bool is_waiting() const;
};

struct VmReport {
  std::string nodeset{};
  std::string nodes{};
  std::size_t count = 0;
  std::string status{};
  std::string zone{};
  TimePoint ends{};
  std::vector<JobId> jobs{};   ///< not more than the sweeper names
  std::size_t jobs_count = 0;  ///< how many there are
};

/// A job that waits for VMs.
struct JobReport {
  JobId id = 0;
  std::string user{};
  std::string nodeset{};
  std::string nodes{};
  std::size_t count = 0;
  std::string request{};
  std::string phase{};  ///< "retry", "turn", "queued", "creating", "booting"; empty: not known
  TimePoint retry_at{};
  TimePoint since{};
  std::string note{};
};

/// Nodes that are asked for again.
struct RetryReport {
  std::string nodes{};
  std::size_t count = 0;
  std::uint64_t failures = 0;  ///< that have been
  TimePoint next{};
  std::string why{};  ///< the last failed
};

/// A group in which nothing is asked for now for those who wait.
struct ShutWayReport {
  std::string nodeset{};
  JobId job = 0;  ///< 0: none
  std::string nodes{};
  std::size_t count = 0;
  std::string group{};
  TimePoint until{};  ///< 0: as long as they wait
  std::string why{};
};

/// A node that was drained and got new VMs, until the sweeper has given up.
struct RepairReport {
  std::string node{};
  std::uint64_t count = 0;
  std::string reason{};
};

struct LeakReport {
  std::string kind{};
  std::string target{};
  std::string why{};
};

struct ActionReport {
  TimePoint when{};
  std::string rule{};
  std::string what{};
  std::string target{};
  std::string nodes{};
  JobId job = 0;
  std::string why{};
  std::string result{};     ///< "done", "again", "failed", "skipped"; empty: not known
  std::string error{};      ///< why it failed
  std::uint64_t times = 0;  ///< in a row; 0: not known
};

struct SweeperReport {
  std::string cluster{};
  std::string region{};
  std::string state{};
  std::string why{};
  std::uint64_t pid = 0;
  std::uint64_t round = 0;
  std::size_t groups = 0;
  Seconds interval{};
  TimePoint written{};        ///< when the report was made
  TimePoint last_complete{};  ///< the last complete look
  std::uint64_t failures_in_a_row = 0;
  std::chrono::milliseconds took{};
  std::size_t calls = 0;
  std::size_t failed = 0;     ///< actions of the last round
  std::size_t postponed = 0;  ///< actions that the next round makes
  bool is_part = false;       ///< of some nodesets only
  bool is_blind = false;      ///< it has not seen anything yet
  std::vector<NodesetReport> nodesets{};
  std::vector<RequestReport> requests{};
  std::vector<VmReport> vms{};
  std::vector<JobReport> waiting{};
  std::vector<RetryReport> retries{};
  std::vector<ShutWayReport> shut_ways{};
  std::vector<RepairReport> given_up{};
  /// How many of all there are that the sweeper has not listed.
  std::size_t requests_omitted = 0;
  std::size_t active_requests = 0;  ///< of all nodesets, whether listed or not; 0: not known
  std::size_t vms_omitted = 0;
  std::size_t waiting_omitted = 0;
  std::size_t shut_ways_omitted = 0;
  std::vector<LeakReport> leaks{};
  std::vector<ActionReport> actions{};  ///< oldest first
};

/// Invalid for what is no JSON object.
[[nodiscard]] Result<SweeperReport> parse_report(std::string_view text);

/// Only what is about these nodesets; all if there are none.
[[nodiscard]] SweeperReport only_of(SweeperReport report, const std::vector<std::string>& nodesets);

/// The sweeper has not written for longer than it ever takes between two looks.
[[nodiscard]] bool is_stale(const SweeperReport& report, TimePoint now);

/// What somebody should see to, worst first: a sweeper that does not work or cannot do what it
/// wants, a nodeset that the breaker has stopped, a node that was repaired in vain, something that
/// nobody cleans up. A nodeset that was paused is somebody's wish.
[[nodiscard]] std::vector<std::string> find_trouble(const SweeperReport& report, TimePoint now);

}  // namespace flex
