// SPDX-License-Identifier: GPL-2.0-or-later
// The names of jobs' users, for people. slurmctld tells them only at some sites.
#pragma once

#include "lib/core/domain.h"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace flex {

/// Each user is looked up once. A directory that answers slowly is left alone for a while: no round
/// may wait for it, and a number does as well.
class UserNames {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  /// Empty: there is no such user.
  using Lookup = std::function<std::string(std::uint32_t)>;

  UserNames();
  UserNames(Lookup lookup, std::function<SteadyTime()> clock);

  /// For jobs that hold nodes and whose user has no name yet.
  void fill(std::vector<Job>& jobs);

 private:
  [[nodiscard]] std::string find(std::uint32_t user);

  Lookup lookup_;
  std::function<SteadyTime()> clock_;
  std::map<std::uint32_t, std::string> names_{};
  SteadyTime not_before_{};
};

}  // namespace flex
