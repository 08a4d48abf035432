// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/queue.h"

#include "lib/core/state_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20U;

/// Google writes the quota's name in capitals, and the metric's in small letters.
bool names(std::string_view text, std::string_view name) {
  const auto is_same = [](char left, char right) {
    return std::toupper(static_cast<unsigned char>(left)) ==
           std::toupper(static_cast<unsigned char>(right));
  };
  return std::search(text.begin(), text.end(), name.begin(), name.end(), is_same) != text.end();
}

template <class T>
bool read_number(std::string_view text, T& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && at == end;
}

}  // namespace

bool is_active_requests_quota(const Error& error) {
  return error.kind == ErrorKind::Quota && names(error.what, kActiveRequestsQuota);
}

bool is_max_nodes(const Error& error) {
  return error.kind == ErrorKind::Quota && error.code == "MAX_NODES";
}

Result<std::string> find_state_dir(const Config& config, Scheduler& scheduler) {
  if (!config.sweeper.state_dir.empty()) return config.sweeper.state_dir;
  auto settings = scheduler.load_settings();
  if (!settings) return settings.error().in("finding StateSaveLocation");
  if (settings->state_save_location.empty())
    return Error{ErrorKind::Invalid, "slurmctld tells no StateSaveLocation: set sweeper.state_dir"};
  return settings->state_save_location + "/flex-start";
}

std::string to_text(const QueueFile& queue) {
  std::string text =
      fmt::format("{} {}\n", queue.waiting, queue.written.time_since_epoch().count());
  for (const auto& [nodeset, waiting] : queue.nodesets)
    text += fmt::format("{} {}\n", nodeset, waiting);
  return text;
}

Result<QueueFile> parse_queue_file(std::string_view text) {
  const Error bad{ErrorKind::Invalid,
                  "not what the sweeper writes: 'NUMBER SECONDS', then lines 'NODESET NUMBER'"};
  QueueFile queue;
  std::int64_t seconds = 0;
  for (bool is_first = true; is_first || !text.empty(); is_first = false) {
    const std::size_t end = text.find('\n');
    const std::size_t space = text.find(' ');
    if (end == std::string_view::npos || space == 0 || space >= end) return bad;
    const std::string_view left = text.substr(0, space);
    const std::string_view right = text.substr(space + 1, end - space - 1);
    text.remove_prefix(end + 1);
    if (is_first) {
      if (!read_number(left, queue.waiting) || !read_number(right, seconds)) return bad;
      continue;
    }
    std::size_t waiting = 0;
    if (!read_number(right, waiting)) return bad;
    if (waiting > 0) queue.nodesets[std::string(left)] = waiting;
  }
  queue.written = TimePoint{Seconds{seconds}};
  return queue;
}

bool is_in_force(const QueueFile& queue, TimePoint now, Seconds interval) {
  constexpr Seconds kLeast = std::chrono::minutes{5};
  // The other controller's clock may be a little ahead.
  constexpr Seconds kSkew = std::chrono::minutes{1};
  const Seconds age = now - queue.written;
  return !queue.is_empty() && age >= -kSkew && age < std::max(kLeast, 4 * interval);
}

std::string queue_path(const std::string& state_dir) {
  return state_dir + "/queue";
}

Result<Done> write_queue_file(const std::string& state_dir, const QueueFile& queue) {
  const std::string path = queue_path(state_dir);
  if (!queue.is_empty()) return write_atomically(path, to_text(queue));
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return Error{ErrorKind::Denied,
               fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

QueueFile load_queue(const std::string& state_dir, TimePoint now, Seconds interval) {
  const auto text = read_small_file(queue_path(state_dir), kMostText);
  if (!text) return {};
  auto queue = parse_queue_file(*text);
  return queue && is_in_force(*queue, now, interval) ? *std::move(queue) : QueueFile{};
}

}  // namespace flex
