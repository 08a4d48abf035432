// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/history.h"

#include "lib/core/descriptor.h"
#include "lib/core/text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace flex {

namespace {

using Json = nlohmann::json;

/// A list of nodes or a reason of Google's may be long; a line stays readable.
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostLine = std::size_t{64} << 10U;

Error file_error(const std::string& path, int number) {
  const bool is_full = number == ENOSPC || number == EDQUOT || number == EINTR;
  const bool is_missing = number == ENOENT;
  const ErrorKind kind = is_missing ? ErrorKind::NotFound
                         : is_full  ? ErrorKind::Retry
                                    : ErrorKind::Denied;
  return Error{kind, fmt::format("{}: {}", path, std::generic_category().message(number))};
}

void put(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = shortened(text, kMostText);
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::uint64_t number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

std::string older_path(const std::string& state_dir) {
  return history_path(state_dir) + ".1";
}

struct stat status_of(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) status = {};
  return status;
}

/// The writers agree by a lock on the file: one renames it, the others then open the new one.
void rotate(const std::string& state_dir, int file) {
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return;
  const std::string path = history_path(state_dir);
  struct stat there {};
  const bool is_it = ::stat(path.c_str(), &there) == 0 && there.st_ino == status_of(file).st_ino;
  if (is_it) (void)std::rename(path.c_str(), older_path(state_dir).c_str());
}

/// Whole lines from `offset` on; where the last one ends.
std::uint64_t read_lines(int file,
                         std::uint64_t offset,
                         const std::function<void(Event)>& take) {
  std::array<char, std::size_t{64} << 10U> buffer{};
  std::string rest;
  std::uint64_t at = offset;
  while (true) {
    const ssize_t got = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    at += static_cast<std::uint64_t>(got);
    rest.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', begin)) {
      auto event = parse_event(std::string_view(rest).substr(begin, end - begin));
      if (event) take(std::move(*event));
      begin = end + 1;
    }
    offset += begin;
    rest.erase(0, begin);
    // No line of ours: skipped, so that nothing is kept of it.
    if (rest.size() > 2 * kMostLine) {
      offset += rest.size();
      rest.clear();
    }
  }
  return offset;
}

}  // namespace

std::string to_line(const Event& event) {
  Json json{{"t", event.when.time_since_epoch().count()}};
  put(json, "program", event.program);
  put(json, "what", event.what);
  if (event.job != 0) json["job"] = event.job;
  put(json, "nodeset", event.nodeset);
  put(json, "group", event.group);
  put(json, "request", event.request);
  put(json, "nodes", event.nodes);
  if (event.n != 0) json["n"] = event.n;
  put(json, "rule", event.rule);
  put(json, "why", event.why);
  for (const auto& [key, value] : event.more) put(json["more"], key.c_str(), value);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Event> parse_event(std::string_view line) {
  const Error bad{ErrorKind::Invalid, "no line of the history"};
  if (line.size() > kMostLine) return bad;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return bad;
  const auto time = json.find("t");
  if (time == json.end() || !time->is_number_integer()) return bad;
  Event event{.when = TimePoint{Seconds{time->get<std::int64_t>()}},
              .program = text_of(json, "program"),
              .what = text_of(json, "what"),
              .job = static_cast<JobId>(number_of(json, "job")),
              .nodeset = text_of(json, "nodeset"),
              .group = text_of(json, "group"),
              .request = text_of(json, "request"),
              .nodes = text_of(json, "nodes"),
              .n = number_of(json, "n"),
              .rule = text_of(json, "rule"),
              .why = text_of(json, "why"),
              .more = {}};
  if (event.what.empty()) return bad;
  if (const auto more = json.find("more"); more != json.end() && more->is_object()) {
    for (const auto& [key, value] : more->items()) {
      if (value.is_string()) event.more[key] = value.get<std::string>();
    }
  }
  return event;
}

std::string history_path(const std::string& state_dir) {
  return state_dir + "/history.jsonl";
}

Result<Done> append_history(const std::string& state_dir,
                            std::span<const Event> events,
                            std::size_t most) {
  if (events.empty()) return Done{};
  const std::string path = history_path(state_dir);
  const Descriptor file{
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640)};
  if (file.get() < 0) return file_error(path, errno);
  for (const Event& event : events) {
    const std::string line = to_line(event) + '\n';
    if (::write(file.get(), line.data(), line.size()) < 0) return file_error(path, errno);
  }
  if (static_cast<std::size_t>(status_of(file.get()).st_size) > most) rotate(state_dir, file.get());
  return Done{};
}

Result<Done> read_history(const std::string& state_dir,
                          HistoryMark& mark,
                          const std::function<void(Event)>& take) {
  const std::string path = history_path(state_dir);
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (file.get() < 0) return file_error(path, errno);
  const std::uint64_t now_in = status_of(file.get()).st_ino;
  if (mark.file != now_in) {
    // What was written to the older file after the last look, or all of it at the first.
    const Descriptor older{::open(older_path(state_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (older.get() >= 0) {
      const bool is_known = status_of(older.get()).st_ino == mark.file;
      (void)read_lines(older.get(), is_known ? mark.offset : 0, take);
    }
    mark = {.file = now_in, .offset = 0};
  }
  mark.offset = read_lines(file.get(), mark.offset, take);
  return Done{};
}

HistoryMark end_of_history(const std::string& state_dir) {
  struct stat there {};
  if (::stat(history_path(state_dir).c_str(), &there) != 0) return {};
  return {.file = there.st_ino, .offset = static_cast<std::uint64_t>(there.st_size)};
}

}  // namespace flex
