// SPDX-License-Identifier: GPL-2.0-or-later
// This machine's clock against Google's.
#include "ctl/doctor/checks.h"
#include "ctl/terminal.h"

#include <fmt/format.h>

#include <chrono>

namespace flex::doctor {

void check_clock(const Facts& facts, Findings& findings) {
  using namespace std::chrono_literals;
  if (!facts.cloud.clock_skew) return;
  const Seconds skew = *facts.cloud.clock_skew;
  const Seconds size = skew < 0s ? -skew : skew;
  // A slow answer is no wrong clock.
  if (size < 30s) return;
  findings.push_back(
      {.id = "clock.skew",
       .severity = size >= 5min ? Severity::Error : Severity::Warning,
       .what = fmt::format("this machine's clock is {} {} Google's",
                           span_text(size),
                           skew > 0s ? "ahead of" : "behind"),
       .why = "lease ends and warnings come at the wrong time, munge refuses messages, and with a "
              "key file no token is given",
       .fix = "set the clock, and keep it with chrony or systemd-timesyncd",
       .hints = {"timedatectl set-ntp true", "chronyc tracking"}});
}

}  // namespace flex::doctor
