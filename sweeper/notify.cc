// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/notify.h"

#include <cstdint>
#include <systemd/sd-daemon.h>

namespace flex {

void notify_systemd(const std::string& message) {
  sd_notify(0, message.c_str());
}

std::optional<std::chrono::microseconds> watchdog_interval() {
  std::uint64_t limit = 0;
  if (sd_watchdog_enabled(0, &limit) <= 0) return std::nullopt;
  return std::chrono::microseconds{limit / 2};
}

}  // namespace flex
