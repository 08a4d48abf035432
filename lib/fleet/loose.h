// SPDX-License-Identifier: GPL-2.0-or-later
// Nodesets that have VMs in no group. The sweeper says so in a file: flex-resume looks for them
// there also where the config does not speak of bulkInsert (any more), and nowhere else, for each
// look is a call for every zone.
#pragma once

#include "lib/core/result.h"

#include <set>
#include <string>
#include <string_view>

namespace flex {

using NodesetNames = std::set<std::string>;

/// <state_dir>/loose: a nodeset a line.
[[nodiscard]] std::string loose_path(const std::string& state_dir);
/// None: there is no file. Success if there was none.
[[nodiscard]] Result<Done> write_loose_file(const std::string& state_dir,
                                            const NodesetNames& names);
/// None also if that cannot be read.
[[nodiscard]] NodesetNames load_loose(const std::string& state_dir);

}  // namespace flex
