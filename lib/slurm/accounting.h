// SPDX-License-Identifier: GPL-2.0-or-later
// Associations and QOS as slurmctld has them in memory.
#pragma once

#include "lib/core/accounting.h"
#include "lib/core/result.h"

#include <slurm/slurm.h>
#include <slurm/slurmdb.h>

#include <span>
#include <string>

namespace flex::slurm {

/// One RPC. Empty `users`: all.
[[nodiscard]] Result<Accounting> load_accounting(std::span<const std::string> users);

/// slurmctld's answer as our structs (pure).
[[nodiscard]] Accounting to_accounting(const assoc_mgr_info_msg_t& answer);

[[nodiscard]] Enforcement to_enforcement(std::uint16_t flags);

}  // namespace flex::slurm
