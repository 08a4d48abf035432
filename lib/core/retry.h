// SPDX-License-Identifier: GPL-2.0-or-later
// How long to wait before trying again (pure): exponential with full jitter, and the server's own
// hint.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

namespace flex {

struct RetryPolicy {
  int limit = 10;  ///< tries in all: about 20 s of waiting, 40 s at most
  std::chrono::milliseconds base{200};
  std::chrono::milliseconds max{10000};
};

/// Uniform in [0, 1).
using Random = std::function<double()>;

/// The wait after failed try number `tries` (1 is the first): random in (0, min(max,
/// base·2^(tries-1))], but never less than what the server asked for with Retry-After. Nothing when
/// `tries` has reached the limit.
[[nodiscard]] std::optional<std::chrono::milliseconds> retry_delay(
    const RetryPolicy& policy,
    int tries,
    std::optional<std::chrono::milliseconds> server_hint,
    const Random& random);

}  // namespace flex
