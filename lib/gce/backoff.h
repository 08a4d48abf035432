// SPDX-License-Identifier: GPL-2.0-or-later
// Trying again later, but never past the run's deadline.
#pragma once

#include "lib/core/result.h"
#include "lib/core/retry.h"
#include "lib/gce/http.h"

#include <chrono>
#include <functional>
#include <optional>

namespace flex {

class Backoff {
 public:
  /// The deadline is `limit` from now. `http` must outlive this.
  Backoff(HttpClient& http, RetryPolicy policy, std::chrono::milliseconds limit);

  void set_deadline(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const { return deadline_; }

  [[nodiscard]] bool is_over() const { return http_->now() >= deadline_; }

  /// Calls `what` after the wait that is due after failed try number `tries`. False, and nothing
  /// happens: no more tries, or no time for one.
  [[nodiscard]] bool again(int tries,
                           std::optional<std::chrono::milliseconds> server_hint,
                           std::function<void()> what);

  /// "the run's time limit of 120 s is used up", after `last` where there is one.
  [[nodiscard]] Error time_is_up(const Error& last) const;

 private:
  HttpClient* http_;
  RetryPolicy policy_;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace flex
