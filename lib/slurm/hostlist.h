// SPDX-License-Identifier: GPL-2.0-or-later
// Slurm's spelling of node lists, through libslurm, with our own check in front of it: releases
// differ in what malformed lists they take (22.05 reads "n[0-" as one host).
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Lists longer than this are refused rather than expanded.
inline constexpr std::size_t kMaxHosts = 65536;

/// "a3u-[0-2,7]" to its names in order, duplicates dropped. Invalid with the place of the mistake
/// for anything malformed; an empty list is no nodes.
[[nodiscard]] Result<std::vector<NodeName>> expand_hostlist(std::string_view text);

/// The other way, sorted and folded: "a3u-[0-2,7]".
[[nodiscard]] std::string fold_hostlist(const std::vector<NodeName>& nodes);

}  // namespace flex
