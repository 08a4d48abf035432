// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/user_names.h"

#include <array>
#include <pwd.h>
#include <utility>

namespace flex {

namespace {

constexpr std::chrono::milliseconds kSlow{500};
constexpr std::chrono::minutes kPause{10};

std::string look_up(std::uint32_t user) {
  constexpr std::size_t kMostEntry = 16384;
  std::array<char, kMostEntry> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? std::string{} : std::string(found->pw_name);
}

}  // namespace

UserNames::UserNames() : UserNames(look_up, [] { return std::chrono::steady_clock::now(); }) {}

UserNames::UserNames(Lookup lookup, std::function<SteadyTime()> clock)
    : lookup_(std::move(lookup)), clock_(std::move(clock)) {}

void UserNames::fill(std::vector<Job>& jobs) {
  for (Job& job : jobs) {
    if (job.user.empty() && job.holds_nodes()) job.user = find(job.user_id);
  }
}

std::string UserNames::find(std::uint32_t user) {
  if (const auto known = names_.find(user); known != names_.end()) return known->second;
  const SteadyTime before = clock_();
  if (before < not_before_) return {};
  std::string& name = names_[user] = lookup_(user);
  if (const SteadyTime after = clock_(); after - before > kSlow) not_before_ = after + kPause;
  return name;
}

}  // namespace flex
