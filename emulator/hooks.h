// SPDX-License-Identifier: GPL-2.0-or-later
// Runs the hook program when a VM is up or gone: no shell, in order, never waiting for its end.
#pragma once

#include "emulator/json.h"
#include "emulator/world.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace flex::emulator {

class HookRunner {
 public:
  HookRunner();
  ~HookRunner();
  HookRunner(const HookRunner&) = delete;
  HookRunner& operator=(const HookRunner&) = delete;

  /// Queues the calls; each is started before the next one is.
  void run(const std::vector<std::string>& program, std::vector<HookCall> calls);
  /// Waits until all that is queued has been started, but not for long.
  void drain();
  [[nodiscard]] Json counters() const;

 private:
  void work();
  void start(const std::vector<std::string>& program, const HookCall& call);
  void reap();

  mutable std::mutex mutex_{};
  std::condition_variable wake_{};
  std::deque<std::pair<std::vector<std::string>, HookCall>> queue_{};
  std::size_t running_ = 0;
  std::uint64_t up_ = 0;
  std::uint64_t down_ = 0;
  std::uint64_t failed_ = 0;
  bool is_starting_ = false;
  bool is_stopping_ = false;
  std::thread thread_{};
};

}  // namespace flex::emulator
