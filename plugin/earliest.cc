// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/earliest.h"

#include <charconv>

namespace flex::plugin {

namespace {

constexpr std::string_view kOwn = "own ";
constexpr std::string_view kUnanswered = "unanswered ";
/// Before a question that nobody answered is asked again: each time costs a step two seconds.
constexpr Seconds kPause = std::chrono::minutes{5};

}  // namespace

std::optional<NodeLease> earliest(const std::vector<NodeLease>& leases, TimePoint now) {
  std::optional<NodeLease> first;
  for (const NodeLease& lease : leases) {
    if (lease.end > now && (!first || lease.end < first->end)) first = lease;
  }
  return first;
}

std::string to_line(const Answer& answer) {
  return std::string(answer.is_whole ? "" : kOwn) +
         (answer.lease ? write_lease(*answer.lease) : "none");
}

std::string unanswered_line(TimePoint now) {
  return std::string(kUnanswered) + std::to_string(now.time_since_epoch().count());
}

bool is_good(std::string_view line, TimePoint now) {
  if (!line.starts_with(kUnanswered)) return true;
  line.remove_prefix(kUnanswered.size());
  std::int64_t asked = 0;
  std::from_chars(line.data(), line.data() + line.size(), asked);
  const Seconds age = now - TimePoint{Seconds{asked}};
  return age >= Seconds{0} && age < kPause;
}

Answer from_line(std::string_view line, TimePoint now) {
  Answer answer{.lease = read_lease(line), .is_whole = !line.starts_with(kOwn)};
  if (answer.lease && answer.lease->end <= now) answer.lease.reset();
  return answer;
}

}  // namespace flex::plugin
