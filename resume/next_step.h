// SPDX-License-Identifier: GPL-2.0-or-later
// What a zone can never serve is asked for as the next entry of on_stockout says, at once (pure).
#pragma once

#include "lib/config/config.h"
#include "resume/apply.h"
#include "resume/demand.h"

#include <cstddef>
#include <vector>

namespace flex {

/// Takes those outcomes out that failed because their zone can never serve them, if nothing else
/// was asked for their nodes and on_stockout has another entry: `step` is that of the next try.
[[nodiscard]] std::vector<RequestOutcome> take_hopeless(const Config& config,
                                                        std::vector<RequestOutcome>& outcomes,
                                                        std::size_t step);

/// The part of the demand that they were for.
[[nodiscard]] Demand part_of(const Demand& demand, const std::vector<RequestOutcome>& outcomes);

}  // namespace flex
