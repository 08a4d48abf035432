// SPDX-License-Identifier: GPL-2.0-or-later
// What a job's author asks of Flex Start: "flex(run=4h,wait=30m,ontimeout=hold)" in the job's
// comment, written there by the plugin or by hand (pure, small: also for the plugin).
#pragma once

#include "lib/core/domain.h"
#include "lib/core/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// What becomes of a job whose VMs did not come in time.
enum class OnTimeout { Requeue, Hold, Cancel };

/// "requeue", "hold", "cancel".
[[nodiscard]] std::string_view to_string(OnTimeout on_timeout);

struct JobWish {
  std::optional<Seconds> run{};   ///< how long the VMs are to live
  std::optional<Seconds> wait{};  ///< how long the job waits for them at most
  std::optional<OnTimeout> on_timeout{};
  /// What could not be understood, each a sentence for the job's author. The rest counts.
  std::vector<std::string> problems{};

  [[nodiscard]] bool is_empty() const { return !run && !wait && !on_timeout; }
};

/// How long a job may say that it waits; without a word it waits as long as the nodeset allows.
inline constexpr Seconds kMinWait = Seconds{1};
inline constexpr Seconds kMaxWait = std::chrono::hours{7 * 24};

/// Of an option or a field: `name` is how the author spelt it ("--flex-run-duration", "run"), for
/// the message, which is one sentence. `longest`: what the site allows, where that is less.
[[nodiscard]] Result<Seconds> parse_run(std::string_view name,
                                        std::string_view value,
                                        Seconds longest = kMaxRunDuration);
[[nodiscard]] Result<Seconds> parse_wait(std::string_view name,
                                         std::string_view value,
                                         Seconds longest = kMaxWait);
[[nodiscard]] Result<OnTimeout> parse_on_timeout(std::string_view name, std::string_view value);

/// All that the tokens of a text ask for; a later one counts more.
[[nodiscard]] JobWish parse_wish(std::string_view text);

/// What a job asks for: in its comment, and what is not there in its --extra.
[[nodiscard]] JobWish wish_of(const Job& job);

/// `comment` with a token that asks for `wish`, in the place of the one that it had, else at its
/// end; what the old one asked for and `wish` leaves open stays. The rest is as it was.
[[nodiscard]] std::string with_wish(std::string_view comment, const JobWish& wish);

}  // namespace flex
