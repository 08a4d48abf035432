// SPDX-License-Identifier: GPL-2.0-or-later
// A question that must not cost more than so much time, whatever happens to whom answers it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace flex::plugin {

using Deadline = std::chrono::steady_clock::time_point;

/// What `work` returned, in a process of its own: it may hang, crash or exit. Nothing then, or if
/// it is too long (kMaxAnswer), or not there in time. The process is gone afterwards, nobody
/// else's child is waited for, and signals are as before.
[[nodiscard]] std::optional<std::string> ask_child(const std::function<std::string()>& work,
                                                   Deadline deadline);

inline constexpr std::size_t kMaxAnswer = 4096;

}  // namespace flex::plugin
