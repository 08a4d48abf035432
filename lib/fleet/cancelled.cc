// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/cancelled.h"

#include "lib/core/state_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flex {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{1} << 20U;
/// The sweeper takes one up in its next round, and remembers it for the rest of the wait.
constexpr Seconds kKept = std::chrono::hours{24};

Result<Done> write(const std::string& state_dir, const CancelledWays& ways) {
  const std::string path = cancelled_path(state_dir);
  if (!ways.empty()) return write_atomically(path, to_text(ways));
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return Error{ErrorKind::Denied,
               fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

}  // namespace

std::string waiter_key(std::string_view nodeset, JobId job, const NodeName& node) {
  return job == 0 ? node.text : fmt::format("{} job {}", nodeset, job);
}

std::string to_text(const CancelledWays& ways) {
  Json json = Json::array();
  for (const CancelledWay& way : ways)
    json.push_back({{"waiter", way.waiter},
                    {"restarts", way.restart_count},
                    {"group", way.group.text},
                    {"request", way.request.text},
                    {"by", way.by},
                    {"since", way.since.time_since_epoch().count()}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<CancelledWays> parse_cancelled(std::string_view text) {
  try {
    CancelledWays ways;
    const Json json = Json::parse(text);
    if (!json.is_array()) return Error{ErrorKind::Invalid, "no list of cancelled requests"};
    for (const Json& value : json)
      ways.push_back({.waiter = value.at("waiter").get<std::string>(),
                      .restart_count = value.at("restarts").get<std::uint32_t>(),
                      .group = {value.at("group").get<std::string>()},
                      .request = {value.at("request").get<std::string>()},
                      .by = value.at("by").get<std::string>(),
                      .since = TimePoint{Seconds{value.at("since").get<std::int64_t>()}}});
    return ways;
  } catch (const std::exception& error) {
    return Error{ErrorKind::Invalid, error.what()};
  }
}

std::string cancelled_path(const std::string& state_dir) {
  return state_dir + "/cancelled.json";
}

Result<FileLock> lock_cancelled(const std::string& state_dir) {
  constexpr std::chrono::milliseconds kPatience = std::chrono::minutes{1};
  if (auto made = make_directory(state_dir); !made) return made.error();
  return FileLock::wait(state_dir + "/cancelled.lock", kPatience);
}

Result<CancelledWays> load_cancelled(const std::string& state_dir) {
  const auto text = read_small_file(cancelled_path(state_dir), kMostText);
  if (!text && text.error().kind == ErrorKind::NotFound) return CancelledWays{};
  if (!text) return text.error();
  auto ways = parse_cancelled(*text);
  if (!ways) return ways.error().in(cancelled_path(state_dir));
  return ways;
}

Result<Done> add_cancelled(const std::string& state_dir, const CancelledWay& way) {
  // No sweeper may have run yet.
  if (auto made = make_directory(state_dir); !made) return made.error();
  // A file that cannot be read is of no use to the sweeper either.
  auto known = load_cancelled(state_dir);
  CancelledWays ways = known ? std::move(*known) : CancelledWays{};
  std::erase_if(ways, [&](const CancelledWay& old) { return way.since - old.since > kKept; });
  ways.push_back(way);
  return write(state_dir, ways);
}

Result<Done> remove_cancelled(const std::string& state_dir, const CancelledWay& way) {
  auto ways = load_cancelled(state_dir);
  if (!ways) return ways.error();
  std::erase(*ways, way);
  return write(state_dir, *ways);
}

}  // namespace flex
