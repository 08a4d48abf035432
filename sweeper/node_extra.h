// SPDX-License-Identifier: GPL-2.0-or-later
// A node's extra belongs to the site; a token in it is ours (pure).
#pragma once

#include "lib/core/node_lease.h"

#include <optional>
#include <string>
#include <string_view>

namespace flex {

/// `extra` with a token for `lease` in the place of ours, else at its end; without ours for no
/// lease. In a JSON object, which Slurm's extra_constraints reads, it is the value of "flex".
[[nodiscard]] std::string with_lease(std::string_view extra, const std::optional<NodeLease>& lease);

}  // namespace flex
