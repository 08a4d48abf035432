// SPDX-License-Identifier: GPL-2.0-or-later
// The parts of validate() that fill files of their own (pure).
#pragma once

#include "lib/config/validate.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace flex {

/// The key under which Marks has a setting of the step: "on_stockout.0.wait".
[[nodiscard]] std::string step_key(std::size_t step, std::string_view key);

/// mode, its other spelling use_bulk_insert, and mig_scope. Makes the two spellings agree.
void check_mode(NodesetConfig& nodeset, const Marks& marks, Problems& problems);

/// Placement is a policy of a group, so each job gets a group of its own.
void check_placement(Config& config,
                     NodesetConfig& nodeset,
                     const Marks& marks,
                     Problems& problems);

void check_race(const NodesetConfig& nodeset, const Marks& marks, Problems& problems);

void check_on_stockout(Config& config,
                       const NodesetConfig& nodeset,
                       const Marks& marks,
                       Problems& problems);

/// The shortest life of a VM depends on how it is asked for.
void check_run_duration(const NodesetConfig& nodeset, const Marks& marks, Problems& problems);

/// Two nodesets must never want groups of the same name: each would take the other's for its own.
void check_group_names(const Config& config, const Sources& sources, Problems& problems);

}  // namespace flex
