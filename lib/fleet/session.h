// SPDX-License-Identifier: GPL-2.0-or-later
// What flex-resume, flex-suspend and flex-resume-fail open first: config, Slurm, Compute Engine.
#pragma once

#include "lib/config/config.h"
#include "lib/core/log.h"
#include "lib/core/program.h"
#include "lib/core/retry.h"
#include "lib/fleet/calls.h"
#include "lib/gce/cloud.h"
#include "lib/slurm/scheduler.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

struct Session {
  Config config{};
  std::string cluster{};
  std::unique_ptr<Scheduler> scheduler{};
  std::unique_ptr<Cloud> cloud{};
  std::string state_dir{};  ///< where the history is; empty until somebody has found it
  std::shared_ptr<CallTally> calls = std::make_shared<CallTally>();  ///< of this cloud
};

/// Nothing if the config is bad (all its problems are logged and printed), or Slurm or the
/// credentials cannot be opened.
[[nodiscard]] std::optional<Session> open_session(const Options& options,
                                                  const Log& log,
                                                  const RetryPolicy& retry = {});

/// The cloud that a config speaks of.
[[nodiscard]] Result<std::unique_ptr<Cloud>> open_cloud(const Config& config,
                                                        const RetryPolicy& retry);

/// The program's last line: what, how much, how many calls, how long. The calls are also told to
/// the history, for the sweeper's metrics.
struct Summary {
  std::string_view event;  ///< "resumed", "suspended", "resume_failed"
  const std::vector<NodeName>& nodes;
  std::size_t done;
  std::size_t failed;
  std::chrono::steady_clock::time_point started;
};

void log_summary(const Log& log, const Session& session, const Summary& summary);

}  // namespace flex
