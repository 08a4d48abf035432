// SPDX-License-Identifier: GPL-2.0-or-later
// What has changed between two looks, as events for the history (pure). What was known is kept in
// chronicle.json, so that a restart neither repeats nor loses an event; losing the file loses what
// happened meanwhile, nothing else.
#pragma once

#include "lib/config/config.h"
#include "lib/core/result.h"
#include "lib/fleet/history.h"
#include "sweeper/snapshot.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct SeenRequest {
  std::string id{};  ///< its key_of(): a name is used again; empty: not known
  RequestState state = RequestState::Unknown;
  JobId job = 0;
  std::string code{};  ///< of Google's last attempt, as it was told
  std::string message{};
  std::optional<TimePoint> estimate{};
  TimePoint told{};  ///< when that was
  std::string nodes{};
  std::size_t n = 0;
  std::uint64_t round = 0;  ///< in which it was last seen; not kept
};

/// A VM that runs.
struct SeenVm {
  std::string id{};
  std::string nodeset{};
  std::string request{};  ///< that brought it; empty: none, or it is not known
  JobId job = 0;          ///< that it was for
  TimePoint since{};
  TimePoint ends{};  ///< 0: not known
  bool is_registered = false;
  bool is_deleted = false;  ///< by one of our programs: soon it is gone
  std::uint64_t round = 0;
};

/// A job that has nodes of ours.
struct SeenJob {
  std::string nodeset{};
  std::string nodes{};
  std::size_t n = 0;
  std::uint32_t restart_count = 0;
  bool has_started = false;
  std::uint64_t round = 0;
};

struct Chronicle {
  bool has_begun = false;                         ///< false: the next look is only remembered
  std::map<std::string, SeenRequest> requests{};  ///< "group/request"
  std::map<std::string, SeenVm> vms{};            ///< "group/node"
  std::map<JobId, SeenJob> jobs{};
  HistoryMark mark{};       ///< the history was read to here
  bool is_changed = false;  ///< since it was last kept; not kept itself
  std::uint64_t round = 0;  ///< not kept
};

/// So many events a round at most; what is over is told in the next one.
inline constexpr std::size_t kMostChanges = 2000;

/// What has changed since the last look; that is what is known from now on.
[[nodiscard]] std::vector<Event> chronicle(const Config& config,
                                           const Snapshot& shot,
                                           Chronicle& known,
                                           std::size_t most = kMostChanges);

/// Takes note of what one of our programs did: a VM that it deleted is not lost.
void learn(Chronicle& known, const Event& event);

/// JSON; never fails.
[[nodiscard]] std::string to_text(const Chronicle& known);
/// Invalid for anything that to_text did not write.
[[nodiscard]] Result<Chronicle> parse_chronicle(std::string_view text);

}  // namespace flex
