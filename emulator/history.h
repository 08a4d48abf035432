// SPDX-License-Identifier: GPL-2.0-or-later
// The lives of VMs and resize requests, bounded: what a check needs when they are gone.
#pragma once

#include "emulator/json.h"
#include "emulator/model.h"

#include <cstdint>
#include <deque>
#include <string>

namespace flex::emulator {

class VirtualClock;

/// Not thread-safe, like the world that writes it.
class History {
 public:
  /// `group`: null for a VM of none.
  void vm_made(const VirtualClock& clock, const Vm& vm, const Group* group);
  /// `how`: "deleted", "lease over", "vanished", "reset".
  void vm_gone(const VirtualClock& clock, const Vm& vm, const std::string& how);
  void request_made(const VirtualClock& clock, const Group& group, const Request& request);
  void request_ended(const VirtualClock& clock, const Group& group, const Request& request);
  /// Time was moved, or runs faster or slower from now on.
  void time_changed(const VirtualClock& clock);

  /// All of it, oldest first. "time" is the wall's, "virtual_time" the one in which leases run.
  [[nodiscard]] Json dump() const;

 private:
  void add(const VirtualClock& clock, Json event);

  std::deque<Json> events_{};
  std::uint64_t dropped_ = 0;  ///< so many of the oldest were let go
};

}  // namespace flex::emulator
