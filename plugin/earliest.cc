// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/earliest.h"

#include <charconv>

namespace flex::plugin {

namespace {

constexpr std::string_view kOwn = "own ";
constexpr std::string_view kNone = "none ";
constexpr std::string_view kUnanswered = "unanswered ";
/// Before a question is asked again that nobody answered, which costs a step two seconds each time,
/// or to which there was no answer yet: the sweeper or Google may have been away.
constexpr Seconds kPause = std::chrono::minutes{5};

std::string with_time(std::string_view word, TimePoint now) {
  return std::string(word) + std::to_string(now.time_since_epoch().count());
}

}  // namespace

std::optional<NodeLease> earliest(const std::vector<NodeLease>& leases, TimePoint now) {
  std::optional<NodeLease> first;
  for (const NodeLease& lease : leases) {
    if (lease.end > now && (!first || lease.end < first->end)) first = lease;
  }
  return first;
}

std::string to_line(const Answer& answer, TimePoint now) {
  return std::string(answer.is_whole ? "" : kOwn) +
         (answer.lease ? write_lease(*answer.lease) : with_time(kNone, now));
}

std::string unanswered_line(TimePoint now) {
  return with_time(kUnanswered, now);
}

bool is_good(std::string_view line, TimePoint now) {
  if (line.starts_with(kOwn)) line.remove_prefix(kOwn.size());
  // A line of an older version has no time: that is long ago.
  if (line == kNone.substr(0, kNone.size() - 1)) return false;
  const std::string_view word = line.starts_with(kNone) ? kNone : kUnanswered;
  if (!line.starts_with(word)) return true;
  line.remove_prefix(word.size());
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
