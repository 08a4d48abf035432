// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/calls.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <system_error>

namespace flex {

namespace {

template <class T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  return number;
}

}  // namespace

void CallTally::add(const CallNote& note) {
  ++counts_[{std::string(note.method), note.status}];
  if (note.is_retry) ++retries_;
  took_ += note.took;
}

Event CallTally::event(std::string_view program, TimePoint when) const {
  Event event;
  event.when = when;
  event.program = program;
  event.what = "calls";
  for (const auto& [kind, count] : counts_)
    event.more[fmt::format("{} {}", kind.first, kind.second)] = std::to_string(count);
  event.more["retries"] = std::to_string(retries_);
  event.more["ms"] = std::to_string(took_.count());
  return event;
}

CallCounts calls_in(const Event& event) {
  CallCounts found;
  for (const auto& [key, value] : event.more) {
    const auto count = number_in<std::uint64_t>(value);
    if (!count) continue;
    if (key == "retries") found.retries = *count;
    const std::size_t space = key.find(' ');
    if (space == std::string::npos) continue;
    const auto status = number_in<int>(std::string_view(key).substr(space + 1));
    if (status && *status >= 0 && *status <= 999)
      found.calls.push_back({.method = key.substr(0, space), .status = *status, .count = *count});
  }
  return found;
}

}  // namespace flex
