// SPDX-License-Identifier: GPL-2.0-or-later
// What a node has found out for a job, for the job's next step on the same node: a file with one
// line for each job, in a directory of slurmd's user.
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"
#include "plugin/ask.h"

#include <functional>
#include <string>

namespace flex::plugin {

struct CachePlace {
  std::string directory{};
  JobId job = 0;
};

/// What is in the job's file, if `is_good` says so, else what `ask` says, which is then in it. Of
/// several processes one asks and the others wait for it. The directory is made where there is
/// none, not its parents (NotFound). Denied if it is somebody else's or others may write to it,
/// Retry if another process still holds the file at the deadline.
[[nodiscard]] Result<std::string> read_or_ask(
    const CachePlace& place,
    Deadline deadline,
    const std::function<bool(const std::string&)>& is_good,
    const std::function<std::string()>& ask);

/// Success if there is none.
[[nodiscard]] Result<Done> remove_cached(const CachePlace& place);

}  // namespace flex::plugin
