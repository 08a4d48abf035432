// SPDX-License-Identifier: GPL-2.0-or-later
// Whose files we believe: whoever can write the config or a key decides which VMs are made and
// deleted.
#pragma once

#include <optional>
#include <sys/types.h>
#include <unistd.h>

namespace flex {

/// Root, the user we run as, and SlurmUser where root runs us.
[[nodiscard]] inline bool is_trusted_owner(uid_t owner, const std::optional<uid_t>& slurm_user) {
  const uid_t self = ::geteuid();
  return owner == 0 || owner == self || (self == 0 && slurm_user && owner == *slurm_user);
}

}  // namespace flex
