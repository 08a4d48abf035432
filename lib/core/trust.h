// SPDX-License-Identifier: GPL-2.0-or-later
// Whose files we believe: whoever can write the config or a key decides which VMs are made and
// deleted.
#pragma once

#include "lib/core/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <sys/types.h>
#include <unistd.h>

namespace flex {

/// Root, the user we run as, and SlurmUser where root runs us.
[[nodiscard]] inline bool is_trusted_owner(uid_t owner, const std::optional<uid_t>& slurm_user) {
  const uid_t self = ::geteuid();
  return owner == 0 || owner == self || (self == 0 && slurm_user && owner == *slurm_user);
}

/// Who else may read the file.
enum class Readers { Any, Owner };

/// The whole file, if it is a regular one of a trusted owner that nobody else may write. NotFound:
/// there is none, or it may not be read. Invalid: anything else, with what to do.
[[nodiscard]] Result<std::string> read_trusted_file(const std::string& path,
                                                    const std::optional<uid_t>& slurm_user,
                                                    std::size_t most,
                                                    Readers readers = Readers::Any);

}  // namespace flex
