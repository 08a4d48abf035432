// SPDX-License-Identifier: GPL-2.0-or-later
// The wall clock as an argument, so that tests can set it.
#pragma once

#include "lib/core/domain.h"

#include <chrono>

namespace flex {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  }
};

}  // namespace flex
