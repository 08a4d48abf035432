// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_wish.h"

#include "lib/core/duration.h"
#include "lib/core/text.h"
#include "lib/core/token.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace flex {

namespace {

/// A value as it can be shown: not endless, no control characters.
std::string shown(std::string_view value) {
  constexpr std::size_t kMost = 40;
  const std::string_view beginning = beginning_of(value, kMost);
  return printable(beginning, '?') + (beginning.size() < value.size() ? "..." : "");
}

Error refused(std::string_view name, std::string_view value, std::string_view why) {
  return {ErrorKind::Invalid, fmt::format("{}={}: {}", name, shown(value), why), "BAD_WISH"};
}

Result<Seconds> parse_time_in(std::string_view name,
                              std::string_view value,
                              std::string_view what,
                              std::pair<Seconds, Seconds> limits) {
  const auto [shortest, longest] = limits;
  const std::string range =
      fmt::format("{} from {} to {}", what, format_duration(shortest), format_duration(longest));
  const auto time = parse_job_time(value);
  const bool is_number =
      !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
  if (!time && is_number) return refused(name, value, fmt::format("too long, {}", range));
  if (!time)
    return refused(name,
                   value,
                   fmt::format("not a time; write minutes, 90m, 4h, 2d or D-HH:MM:SS, {}", range));
  if (*time < shortest) return refused(name, value, fmt::format("too short, {}", range));
  if (*time > longest) return refused(name, value, fmt::format("too long, {}", range));
  return *time;
}

/// One field of a token.
void take(JobWish& wish, std::string_view key, std::string_view value) {
  const auto keep = [&wish](auto& place, auto result) {
    if (result)
      place = *result;
    else
      wish.problems.push_back(std::move(result).error().what);
  };
  if (key == "run")
    keep(wish.run, parse_run(key, value));
  else if (key == "wait")
    keep(wish.wait, parse_wait(key, value));
  else if (key == "ontimeout")
    keep(wish.on_timeout, parse_on_timeout(key, value));
  else
    wish.problems.push_back(
        fmt::format("{}: not known; write flex(run=4h,wait=30m,ontimeout=hold)", shown(key)));
}

/// What `wish` leaves open is as in `other`.
void fill(JobWish& wish, const JobWish& other) {
  if (!wish.run) wish.run = other.run;
  if (!wish.wait) wish.wait = other.wait;
  if (!wish.on_timeout) wish.on_timeout = other.on_timeout;
}

std::string write_wish(const JobWish& wish) {
  return write_token(
      {{"run", wish.run ? format_duration(*wish.run) : std::string{}},
       {"wait", wish.wait ? format_duration(*wish.wait) : std::string{}},
       {"ontimeout", std::string(wish.on_timeout ? to_string(*wish.on_timeout) : "")}});
}

}  // namespace

std::string_view to_string(OnTimeout on_timeout) {
  switch (on_timeout) {
    case OnTimeout::Requeue:
      return "requeue";
    case OnTimeout::Hold:
      return "hold";
    case OnTimeout::Cancel:
      return "cancel";
  }
  return "";
}

Result<Seconds> parse_run(std::string_view name, std::string_view value, Seconds longest) {
  return parse_time_in(name, value, "VMs live", {kMinRunDuration, longest});
}

Result<Seconds> parse_wait(std::string_view name, std::string_view value, Seconds longest) {
  return parse_time_in(name, value, "a job may wait", {kMinWait, longest});
}

Result<OnTimeout> parse_on_timeout(std::string_view name, std::string_view value) {
  for (const OnTimeout choice : {OnTimeout::Requeue, OnTimeout::Hold, OnTimeout::Cancel}) {
    if (value == to_string(choice)) return choice;
  }
  return refused(name, value, "write requeue, hold or cancel");
}

JobWish parse_wish(std::string_view text) {
  JobWish wish;
  for (const Token& token : find_tokens(text)) {
    for (const auto& [key, value] : token.fields) take(wish, key, value);
  }
  return wish;
}

JobWish wish_of(const Job& job) {
  JobWish wish = parse_wish(job.comment);
  JobWish other = parse_wish(job.extra);
  fill(wish, other);
  wish.problems.insert(wish.problems.end(),
                       std::make_move_iterator(other.problems.begin()),
                       std::make_move_iterator(other.problems.end()));
  return wish;
}

std::string with_wish(std::string_view comment, const JobWish& wish) {
  if (wish.is_empty()) return std::string(comment);
  JobWish all = wish;
  fill(all, parse_wish(comment));
  const std::string token = write_wish(all);
  std::string text;
  std::size_t done = 0;
  bool is_written = false;
  for (const Token& old : find_tokens(comment)) {
    text.append(comment.substr(done, old.begin - done));
    done = old.begin + old.size;
    if (!is_written) text.append(token);
    is_written = true;
  }
  text.append(comment.substr(done));
  if (is_written) return text;
  return text.empty() ? token : text + " " + token;
}

}  // namespace flex
