// SPDX-License-Identifier: GPL-2.0-or-later
// Writes the sweeper's part of the history: what it sees changing and what it does.
#pragma once

#include "lib/core/log.h"
#include "sweeper/chronicle.h"

#include <string>
#include <vector>

namespace flex {

class Historian {
 public:
  Historian(std::string state_dir, const Log& log) : state_dir_(std::move(state_dir)), log_(log) {}

  /// What was known when the sweeper last ran. Without it the next look is only remembered.
  void load();

  /// After a complete look: what has changed since the last one.
  void look(const Config& config, const Snapshot& shot);

  /// What has been done just now.
  void tell(std::vector<Event> events);

 private:
  void read_on(std::vector<Event>* own);
  void save();

  std::string state_dir_;
  const Log& log_;
  Chronicle known_{};
  bool is_first_ = true;  ///< look since load()
};

}  // namespace flex
