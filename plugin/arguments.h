// SPDX-License-Identifier: GPL-2.0-or-later
// What stands behind the plugin's name in plugstack.conf (pure).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/job_wish.h"
#include "lib/core/result.h"

#include <span>
#include <string>
#include <string_view>

namespace flex::plugin {

struct Arguments {
  Seconds max_run = kMaxRunDuration;  ///< what --flex-run-duration may say at most
  Seconds max_wait = kMaxWait;        ///< the same for --flex-max-wait
  /// Where a node keeps what it has asked for; empty: "flex-start" in SlurmdSpoolDir. %n and %h as
  /// in slurm.conf.
  std::string cache_dir{};
  bool tells_lease = true;  ///< false: nothing is asked or set on the node
};

/// Unknown, doubled and bad ones are Invalid, with a sentence for the admin.
[[nodiscard]] Result<Arguments> parse_arguments(std::span<char* const> words);

/// The names of a node, for paths in slurm.conf.
struct NodeNames {
  std::string node{};
  std::string host{};
};

/// %n is the node's name, %h the host's.
[[nodiscard]] std::string expand_path(std::string_view path, const NodeNames& names);

}  // namespace flex::plugin
