// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/retry.h"

#include <algorithm>
#include <cstdint>

namespace flex {

std::optional<std::chrono::milliseconds> retry_delay(
    const RetryPolicy& policy,
    int tries,
    std::optional<std::chrono::milliseconds> server_hint,
    const Random& random) {
  using std::chrono::milliseconds;
  if (tries >= policy.limit) return std::nullopt;
  const int doublings = std::clamp(tries - 1, 0, 30);
  const std::int64_t ceiling = std::min<std::int64_t>(
      policy.max.count(), policy.base.count() * (std::int64_t{1} << doublings));
  const auto drawn = static_cast<std::int64_t>(random() * static_cast<double>(ceiling)) + 1;
  milliseconds delay{std::min(drawn, std::max<std::int64_t>(ceiling, 1))};
  if (server_hint && *server_hint > delay) delay = *server_hint;
  return delay;
}

}  // namespace flex
