// SPDX-License-Identifier: GPL-2.0-or-later
// The queue before Google's queue: a region takes only so many requests at once, a nodeset only so
// many nodes. The sweeper says in a file that jobs wait for their turn; flex-resume does not ask
// past them. A file that is lost or old changes only the order.
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/slurm/scheduler.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace flex {

/// Google's name for the quota of requests that wait at once in a region.
inline constexpr std::string_view kActiveRequestsQuota = "ACTIVE_RESIZE_REQUESTS";

/// Google refused a request because too many are active: it is asked for when its turn comes.
[[nodiscard]] bool is_active_requests_quota(const Error& error);
/// The planner refused nodes because the nodeset has as many as it may have: so are they.
[[nodiscard]] bool is_max_nodes(const Error& error);

/// The sweeper's directory: the config's, else one beside slurmctld's own state, so that it is the
/// same whoever looks for it, on every controller that shares that state.
[[nodiscard]] Result<std::string> find_state_dir(const Config& config, Scheduler& scheduler);

/// What the sweeper says about the queue.
struct QueueFile {
  std::size_t waiting = 0;  ///< for room for a request
  TimePoint written{};
  std::map<std::string, std::size_t> nodesets{};  ///< for room in a nodeset (max_nodes), by name

  [[nodiscard]] bool is_empty() const { return waiting == 0 && nodesets.empty(); }
};

[[nodiscard]] std::string to_text(const QueueFile& queue);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<QueueFile> parse_queue_file(std::string_view text);

/// Somebody waits, as the sweeper said lately: one that is dead holds nobody up.
[[nodiscard]] bool is_in_force(const QueueFile& queue, TimePoint now, Seconds interval);

/// <state_dir>/queue.
[[nodiscard]] std::string queue_path(const std::string& state_dir);
/// Nobody waits: there is no file. Success if there was none.
[[nodiscard]] Result<Done> write_queue_file(const std::string& state_dir, const QueueFile& queue);
/// Who waits; nobody also if that cannot be read or is not in force.
[[nodiscard]] QueueFile load_queue(const std::string& state_dir, TimePoint now, Seconds interval);

}  // namespace flex
