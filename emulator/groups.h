// SPDX-License-Identifier: GPL-2.0-or-later
// What the files about groups share.
#pragma once

#include "emulator/model.h"

namespace flex::emulator {

/// VMs that Google allows in the group.
[[nodiscard]] std::int64_t max_group_size(const Group& group);

}  // namespace flex::emulator
