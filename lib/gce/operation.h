// SPDX-License-Identifier: GPL-2.0-or-later
// Waiting for what a write has started.
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"
#include "lib/gce/caller.h"
#include "lib/gce/cloud.h"

#include <string>

namespace flex {

/// What a finished operation means: Done, or its own error in its class.
[[nodiscard]] Result<Done> outcome(const Operation& operation);

/// Asks where it is, in its zone or in `region` (the server holds the call for up to two minutes)
/// until the operation is done. `caller` must live until the answer.
void wait_for(Caller& caller,
              const std::string& region,
              const Operation& operation,
              Then<Done> then);

}  // namespace flex
