// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/arguments.h"

#include <fmt/format.h>

#include <set>
#include <utility>

namespace flex::plugin {

namespace {

Error refused(std::string_view word, std::string_view why) {
  constexpr std::size_t kShown = 60;
  return {ErrorKind::Invalid, fmt::format("{}: {}", word.substr(0, kShown), why), "BAD_ARGUMENT"};
}

/// Where the value goes, or why it cannot.
Result<Done> keep(Result<Seconds> value, Seconds& place) {
  if (!value) return std::move(value).error();
  place = *value;
  return Done{};
}

Result<Done> take(Arguments& arguments, std::string_view key, std::string_view value) {
  if (key == "max_run") return keep(parse_run(key, value), arguments.max_run);
  if (key == "max_wait") return keep(parse_wait(key, value), arguments.max_wait);
  if (key == "cache_dir") {
    if (!value.starts_with('/')) return refused(key, "not an absolute path");
    arguments.cache_dir = value;
    return Done{};
  }
  if (key == "lease") {
    if (value != "on" && value != "off") return refused(key, "write on or off");
    arguments.tells_lease = value == "on";
    return Done{};
  }
  return refused(key, "not known; there are max_run=, max_wait=, cache_dir= and lease=");
}

}  // namespace

Result<Arguments> parse_arguments(std::span<char* const> words) {
  Arguments arguments;
  std::set<std::string_view> seen;
  for (const std::string_view word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return refused(word, "not of the form key=value");
    const std::string_view key = word.substr(0, equals);
    if (!seen.insert(key).second) return refused(key, "given twice");
    if (auto taken = take(arguments, key, word.substr(equals + 1)); !taken)
      return std::move(taken).error();
  }
  return arguments;
}

std::string expand_path(std::string_view path, const NodeNames& names) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    const std::string_view mark = path.substr(at, 2);
    if (mark != "%n" && mark != "%h") {
      text += path[at];
      continue;
    }
    text += mark == "%n" ? names.node : names.host;
    ++at;
  }
  return text;
}

}  // namespace flex::plugin
