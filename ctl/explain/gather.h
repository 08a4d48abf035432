// SPDX-License-Identifier: GPL-2.0-or-later
// What flexctl explain reads: the history, the sweeper's memory, Slurm and Compute Engine.
#pragma once

#include "ctl/explain/story.h"
#include "ctl/setup.h"

#include <string>
#include <vector>

namespace flex {

/// What could be read. What could not be is missing, and a note says why.
struct Gathered {
  std::vector<Event> events{};
  Snapshot shot{};
  Memory memory{};
  TimePoint last_sweep{};
  bool has_slurm = false;
  bool has_cloud = false;
  std::vector<std::string> notes{};

  [[nodiscard]] Facts facts(const Config& config) const;
};

[[nodiscard]] Gathered gather(Setup& setup);

}  // namespace flex
