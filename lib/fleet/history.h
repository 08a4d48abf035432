// SPDX-License-Identifier: GPL-2.0-or-later
// <state_dir>/history.jsonl: what was asked for, seen and done, by all of our programs, one JSON
// object a line. It is for people (flexctl explain) and for counting (metrics): nothing is ever
// decided by it, and losing it loses nothing but the story.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/log.h"
#include "lib/core/result.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Something that happened. What does not apply is empty and is not written.
struct Event {
  TimePoint when{};
  std::string program{};  ///< who says so: "flex-resume", "flex-sweeper", …
  std::string what{};     ///< one word: "requested", "vm_up", "cancel_request", …
  JobId job = 0;
  std::string nodeset{};
  std::string group{};
  std::string request{};
  std::string nodes{};  ///< folded
  std::size_t n = 0;    ///< how many nodes
  std::string rule{};   ///< of the sweeper's actions
  std::string why{};
  std::map<std::string, std::string> more{};  ///< what else there is to say, by kind of event

  friend bool operator==(const Event&, const Event&) = default;
};

/// The nodes that it is about, folded, and how many they are.
void set_nodes(Event& event, const std::vector<NodeName>& nodes);

/// One line without its end; never fails: what is no UTF-8 is replaced, what is long is cut, a list
/// of nodes so that it can still be read (`n` tells how many there were).
[[nodiscard]] std::string to_line(const Event& event);
/// Invalid for anything that to_line did not write. Members that are not known are left out.
[[nodiscard]] Result<Event> parse_event(std::string_view line);

[[nodiscard]] std::string history_path(const std::string& state_dir);

/// The history is kept in two files, of which the older is dropped: so big one may grow.
inline constexpr std::size_t kMostHistory = std::size_t{16} << 20U;

/// Appends, one write(2) a line, so that several programs may write at the same time (on NFS, from
/// one host: two controllers may spoil each other's lines). A full file
/// becomes "history.jsonl.1". Retry or Denied: what is not written is lost, and that is no failure
/// of whatever it tells of.
[[nodiscard]] Result<Done> append_history(const std::string& state_dir,
                                          std::span<const Event> events,
                                          std::size_t most = kMostHistory);

/// The same for whoever only does so beside his work: what cannot be written is a line in the log.
/// Without a directory, or before the sweeper has made it, nothing is kept.
void keep_in_history(const std::string& state_dir, std::span<const Event> events, const Log& log);

/// How far somebody has read.
struct HistoryMark {
  std::uint64_t file = 0;  ///< its inode; 0: nothing has been read
  std::uint64_t offset = 0;
};

/// Reads on from `mark`, and moves it: lines that are not whole yet are left for the next time, bad
/// ones are left out. With a fresh mark everything there is, the older file first. NotFound if
/// there is no history.
[[nodiscard]] Result<Done> read_history(const std::string& state_dir,
                                        HistoryMark& mark,
                                        const std::function<void(Event)>& take);

/// The mark behind the last line that is there now.
[[nodiscard]] HistoryMark end_of_history(const std::string& state_dir);

}  // namespace flex
