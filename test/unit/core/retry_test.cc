// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/retry.h"

#include "test/support/catch.h"

using namespace flex;
using namespace std::chrono_literals;

TEST_CASE("retry_delay: grows, is capped, keeps the server's hint, ends at the limit", "[core]") {
  const RetryPolicy policy{.limit = 6, .base = 100ms, .max = 1000ms};
  const Random most = [] { return 0.999999; };
  const Random least = [] { return 0.0; };
  CHECK(retry_delay(policy, 1, {}, most) == 100ms);
  CHECK(retry_delay(policy, 2, {}, most) == 200ms);
  CHECK(retry_delay(policy, 5, {}, most) == 1000ms);
  CHECK(retry_delay(policy, 5, {}, least) == 1ms);
  CHECK(retry_delay(policy, 1, 5000ms, most) == 5000ms);
  CHECK(retry_delay(policy, 3, 1ms, most) == 400ms);
  CHECK_FALSE(retry_delay(policy, 6, {}, most));
  CHECK_FALSE(retry_delay(policy, 60, {}, most));
}
