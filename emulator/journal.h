// SPDX-License-Identifier: GPL-2.0-or-later
// Every API call that was made, bounded, and counters by method and status.
#pragma once

#include "emulator/json.h"

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace flex::emulator {

struct JournalEntry {
  std::uint64_t seq = 0;
  std::string method{};  ///< as in the API's contract; empty: no such method
  std::string verb{};
  std::string path{};
  Json query = Json::object();
  std::string body{};
  int status = 0;  ///< 0: no answer was sent
  double started = 0;
  double ended = 0;
  std::string fault{};
};

/// Thread-safe.
class Journal {
 public:
  void add(JournalEntry entry);
  /// Entries with a number above `since`, oldest first.
  [[nodiscard]] Json since(std::uint64_t since) const;
  [[nodiscard]] Json counters() const;
  void clear();

 private:
  mutable std::mutex mutex_{};
  std::deque<JournalEntry> entries_{};
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 0;
  std::map<std::string, std::map<int, std::uint64_t>> counters_{};
};

}  // namespace flex::emulator
