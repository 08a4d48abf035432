// SPDX-License-Identifier: GPL-2.0-or-later
// What is written down in the sweeper's state directory about nodesets that ask for nothing: by the
// sweeper (memory.json) and by admins (paused.json).
#pragma once

#include "lib/fleet/pause.h"
#include "sweeper/memory.h"

#include <string>
#include <vector>

namespace flex {

struct Known {
  Memory memory{};  ///< `stopped` has the nodesets that are paused now, and no others that were
  Pauses pauses{};
  std::vector<std::string>
      problems{};  ///< why some of it is missing; a file that is not there is none
};

/// What cannot be read is empty.
[[nodiscard]] Known read_known(const std::string& state_dir);

/// As the sweeper's next round will have it (pure).
void take_pauses(const Pauses& pauses, Memory& memory);

/// "is stopped: 3 boots in a row failed", "is paused by ann: a new image"; empty: it is neither
/// (pure).
[[nodiscard]] std::string stopped_text(const Memory& memory, const std::string& nodeset);

}  // namespace flex
