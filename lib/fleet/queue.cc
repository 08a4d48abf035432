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

namespace flex {

namespace {

constexpr std::size_t kMostText = 100;

/// Google writes the quota's name in capitals, and the metric's in small letters.
bool names(std::string_view text, std::string_view name) {
  const auto is_same = [](char left, char right) {
    return std::toupper(static_cast<unsigned char>(left)) ==
           std::toupper(static_cast<unsigned char>(right));
  };
  return std::search(text.begin(), text.end(), name.begin(), name.end(), is_same) != text.end();
}

template <class T>
const char* read_number(const char* begin, const char* end, T& number) {
  const auto [at, error] = std::from_chars(begin, end, number);
  return error == std::errc{} ? at : nullptr;
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
  return fmt::format("{} {}\n", queue.waiting, queue.written.time_since_epoch().count());
}

Result<QueueFile> parse_queue_file(std::string_view text) {
  const Error bad{ErrorKind::Invalid, "not what the sweeper writes: 'NUMBER SECONDS'"};
  const char* const end = text.data() + text.size();
  QueueFile queue;
  std::int64_t seconds = 0;
  const char* at = read_number(text.data(), end, queue.waiting);
  if (at == nullptr || at == end || *at != ' ') return bad;
  at = read_number(at + 1, end, seconds);
  if (at == nullptr || std::string_view(at, end) != "\n") return bad;
  queue.written = TimePoint{Seconds{seconds}};
  return queue;
}

bool is_in_force(const QueueFile& queue, TimePoint now, Seconds interval) {
  constexpr Seconds kLeast = std::chrono::minutes{5};
  // The other controller's clock may be a little ahead.
  constexpr Seconds kSkew = std::chrono::minutes{1};
  const Seconds age = now - queue.written;
  return queue.waiting > 0 && age >= -kSkew && age < std::max(kLeast, 4 * interval);
}

std::string queue_path(const std::string& state_dir) {
  return state_dir + "/queue";
}

Result<Done> write_queue_file(const std::string& state_dir, const QueueFile& queue) {
  const std::string path = queue_path(state_dir);
  if (queue.waiting > 0) return write_atomically(path, to_text(queue));
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return Error{ErrorKind::Denied,
               fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

std::size_t load_queue(const std::string& state_dir, TimePoint now, Seconds interval) {
  const auto text = read_small_file(queue_path(state_dir), kMostText);
  if (!text) return 0;
  const auto queue = parse_queue_file(*text);
  return queue && is_in_force(*queue, now, interval) ? queue->waiting : 0;
}

}  // namespace flex
