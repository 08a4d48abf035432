// SPDX-License-Identifier: GPL-2.0-or-later
// Two times: the wall's, in which calls, operations and boots take their time, and a virtual one,
// which may run faster and may be moved, in which leases run.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>

namespace flex::emulator {

class VirtualClock {
 public:
  /// `wall` gives seconds since the epoch, never backwards.
  explicit VirtualClock(std::function<double()> wall)
      : wall_(std::move(wall)), wall_base_(wall_()), virtual_base_(wall_base_) {}

  [[nodiscard]] double wall() const { return wall_(); }

  [[nodiscard]] double now() const { return to_virtual(wall_()); }

  [[nodiscard]] double to_virtual(double wall) const {
    return virtual_base_ + (wall - wall_base_) * factor_;
  }

  /// When, by the wall, the virtual time will be (or was) `time`. What is shown to clients: a lease
  /// that says it ends at ten really ends at ten, whatever the factor.
  [[nodiscard]] double to_wall(double time) const {
    return wall_base_ + (time - virtual_base_) / factor_;
  }

  [[nodiscard]] double factor() const { return factor_; }

  void set_factor(double factor) {
    const double wall = wall_();
    virtual_base_ = to_virtual(wall);
    wall_base_ = wall;
    factor_ = factor;
  }

  /// Goes on from a saved moment: then the wall said `wall` and the virtual time was `time`.
  void restore(double wall, double time, double factor) {
    wall_base_ = wall;
    virtual_base_ = time;
    factor_ = factor;
  }

  void advance(double seconds) { virtual_base_ += seconds; }

 private:
  std::function<double()> wall_;
  double wall_base_;
  double virtual_base_;
  double factor_ = 1.0;
};

/// Seconds since the epoch by a clock that never goes backwards.
[[nodiscard]] double steady_wall();

/// As Google writes times: "2026-11-16T03:50:44.123-08:00".
[[nodiscard]] std::string format_stamp(double epoch);
/// "2026-11-16T11:50:44Z".
[[nodiscard]] std::string format_utc(double epoch);
/// "Mon, 16 Nov 2026 11:50:44 GMT".
[[nodiscard]] std::string format_http_date(double epoch);

}  // namespace flex::emulator
