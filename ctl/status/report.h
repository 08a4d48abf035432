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
  std::string stopped{};  ///< why; empty: it is not
  std::vector<NodesByState> states{};

  [[nodiscard]] bool is_paused() const;
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
  std::vector<JobId> jobs{};
};

/// A job that waits for VMs.
struct JobReport {
  JobId id = 0;
  std::string user{};
  std::string nodeset{};
  std::string nodes{};
  std::size_t count = 0;
  std::string request{};
  TimePoint since{};
  std::string note{};
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
};

struct SweeperReport {
  std::string cluster{};
  std::string region{};
  std::string state{};
  std::string why{};
  std::uint64_t pid = 0;
  std::uint64_t round = 0;
  Seconds interval{};
  TimePoint written{};        ///< when the report was made
  TimePoint last_complete{};  ///< the last complete look
  std::uint64_t failures_in_a_row = 0;
  std::chrono::milliseconds took{};
  std::size_t calls = 0;
  std::vector<NodesetReport> nodesets{};
  std::vector<RequestReport> requests{};
  std::vector<VmReport> vms{};
  std::vector<JobReport> waiting{};
  std::vector<LeakReport> leaks{};
  std::vector<ActionReport> actions{};  ///< oldest first
};

/// Invalid for what is no JSON object.
[[nodiscard]] Result<SweeperReport> parse_report(std::string_view text);

/// Only what is about these nodesets; all if there are none.
[[nodiscard]] SweeperReport only_of(SweeperReport report, const std::vector<std::string>& nodesets);

/// The sweeper has not written for longer than it ever takes between two looks.
[[nodiscard]] bool is_stale(const SweeperReport& report, TimePoint now);

/// What somebody should see to, worst first: a sweeper that does not work, a nodeset that the
/// breaker has stopped, something that nobody cleans up. A nodeset that was paused is somebody's
/// wish.
[[nodiscard]] std::vector<std::string> find_trouble(const SweeperReport& report, TimePoint now);

}  // namespace flex
