// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/backoff.h"

#include "lib/gce/random.h"

#include <fmt/format.h>

#include <utility>

namespace flex {

Backoff::Backoff(HttpClient& http, RetryPolicy policy, std::chrono::milliseconds limit)
    : http_(&http), policy_(policy), began_(http.now()), deadline_(began_ + limit) {}

void Backoff::set_deadline(std::chrono::steady_clock::time_point deadline) {
  began_ = http_->now();
  deadline_ = deadline;
}

bool Backoff::again(int tries,
                    std::optional<std::chrono::milliseconds> server_hint,
                    std::function<void()> what) {
  const auto delay = retry_delay(policy_, tries, server_hint, random_unit);
  if (!delay || http_->now() + *delay >= deadline_) return false;
  http_->after(*delay, std::move(what));
  return true;
}

Error Backoff::time_is_up(const Error& last) const {
  const auto limit = std::chrono::round<std::chrono::seconds>(deadline_ - began_);
  std::string what = fmt::format("the run's time limit of {} s is used up", limit.count());
  if (!last.what.empty() && last.code != "DEADLINE") what += fmt::format(" ({})", last.what);
  return {ErrorKind::Retry, std::move(what), "DEADLINE"};
}

}  // namespace flex
