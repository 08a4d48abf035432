// SPDX-License-Identifier: GPL-2.0-or-later
// What the settings mean together (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/config/problems.h"
#include "lib/config/reader.h"

#include <vector>

namespace flex {

/// Where the settings were written. `nodesets` goes with Config::nodesets; a setting that came from
/// `defaults` has its mark there.
struct Sources {
  Marks top{};
  std::vector<Marks> nodesets{};
};

/// Reports what does not go together; fills what follows from the rest: the region, the placement's
/// group per job, warnings and places.
void validate(Config& config, const Sources& sources, Problems& problems);

}  // namespace flex
