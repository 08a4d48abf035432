// SPDX-License-Identifier: GPL-2.0-or-later
// A node's extra belongs to the site; up to two tokens in it are ours (pure): what its VM's lease
// is, and which drain outlives a power-down.
#pragma once

#include "lib/core/node_lease.h"

#include <optional>
#include <string>
#include <string_view>

namespace flex {

/// `extra` with a token for `lease` in the place of ours, else at its end; without ours for no
/// lease. In a JSON object, which Slurm's extra_constraints reads, it is the value of "flex".
[[nodiscard]] std::string with_lease(std::string_view extra, const std::optional<NodeLease>& lease);

/// `extra` with a note that the node is drained for this reason, in the place of one that is there:
/// "flex(drained=fan is broken)". In a JSON object it is the value of "flex_drained". As it is for
/// an empty reason.
[[nodiscard]] std::string with_drain_note(std::string_view extra, std::string_view reason);
/// The reason that the note names; nothing without a note.
[[nodiscard]] std::optional<std::string> drain_note(std::string_view extra);
[[nodiscard]] std::string without_drain_note(std::string_view extra);

}  // namespace flex
