// SPDX-License-Identifier: GPL-2.0-or-later
// systemd's notifications; nothing happens where systemd did not start us.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace flex {

/// "READY=1", "STATUS=…", "WATCHDOG=1", "STOPPING=1", "RELOADING=1".
void notify_systemd(const std::string& message);

/// How often systemd wants to hear WATCHDOG=1; nothing if it does not.
[[nodiscard]] std::optional<std::chrono::microseconds> watchdog_interval();

}  // namespace flex
