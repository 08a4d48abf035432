// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/history.h"

#include "lib/core/descriptor.h"
#include "lib/core/state_file.h"
#include "lib/core/text.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <limits>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flex {

namespace {

using Json = nlohmann::json;

/// A list of nodes or a reason of Google's may be long; a line stays readable.
constexpr std::size_t kMostText = 4096;
constexpr std::size_t kLeastText = 64;
constexpr std::size_t kMostLine = std::size_t{64} << 10U;
/// Times are added to and subtracted from: none that could overflow.
constexpr std::int64_t kLastTime = 253402300799;  // the year 9999

Error file_error(const std::string& path, int number) {
  const bool is_full = number == ENOSPC || number == EDQUOT || number == EINTR;
  const bool is_missing = number == ENOENT;
  const ErrorKind kind = is_missing ? ErrorKind::NotFound
                         : is_full  ? ErrorKind::Retry
                                    : ErrorKind::Denied;
  return Error{kind, fmt::format("{}: {}", path, std::generic_category().message(number))};
}

void put(Json& json, const char* key, const std::string& text, std::size_t most) {
  if (!text.empty()) json[key] = shortened(text, most);
}

/// What there is room for, as a list that can still be read: "a-[1,3,…" becomes "a-[1,3]".
std::string shortened_list(const std::string& list, std::size_t most) {
  if (list.size() <= most) return list;
  const std::string_view part = std::string_view(list).substr(0, most - 1);
  const std::size_t comma = part.rfind(',');
  if (comma == std::string_view::npos) return {};
  std::string kept(part.substr(0, comma));
  const std::size_t open = kept.rfind('[');
  const bool is_inside = open != std::string::npos && kept.find(']', open) == std::string::npos;
  if (is_inside) kept += ']';
  return kept;
}

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::uint64_t number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

JobId job_in(const Json& json) {
  const std::uint64_t number = number_of(json, "job");
  return number > std::numeric_limits<JobId>::max() ? 0 : static_cast<JobId>(number);
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
std::uint64_t read_lines(int file, std::uint64_t offset, const std::function<void(Event)>& take) {
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
    for (std::size_t end = rest.find('\n'); end != std::string::npos;
         end = rest.find('\n', begin)) {
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

/// With no text longer than `most`.
std::string line_of(const Event& event, std::size_t most) {
  Json json{{"t", event.when.time_since_epoch().count()}};
  put(json, "program", event.program, most);
  put(json, "what", event.what, most);
  if (event.job != 0) json["job"] = event.job;
  put(json, "nodeset", event.nodeset, most);
  put(json, "group", event.group, most);
  put(json, "request", event.request, most);
  put(json, "nodes", shortened_list(event.nodes, most), most);
  if (event.n != 0) json["n"] = event.n;
  put(json, "rule", event.rule, most);
  put(json, "why", event.why, most);
  const bool has_room = most > kLeastText;
  for (const auto& [key, value] : event.more) {
    if (has_room && !value.empty()) put(json["more"], key.c_str(), value, most);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A writer that had no space left, or died, may have left half a line: the next one must not
/// become part of it.
bool ends_in_half_line(int file) {
  const off_t size = status_of(file).st_size;
  char last = '\n';
  return size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

void set_nodes(Event& event, const std::vector<NodeName>& nodes) {
  event.nodes = fold_hostlist(nodes);
  event.n = nodes.size();
}

std::string to_line(const Event& event) {
  std::size_t most = kMostText;
  std::string line = line_of(event, most);
  while (line.size() >= kMostLine && most > kLeastText) line = line_of(event, most /= 2);
  return line;
}

Result<Event> parse_event(std::string_view line) {
  const Error bad{ErrorKind::Invalid, "no line of the history"};
  if (line.size() > kMostLine) return bad;
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return bad;
  const auto time = json.find("t");
  if (time == json.end() || !time->is_number_integer()) return bad;
  const auto seconds = time->get<std::int64_t>();
  if (seconds < 0 || seconds > kLastTime) return bad;
  Event event{.when = TimePoint{Seconds{seconds}},
              .program = text_of(json, "program"),
              .what = text_of(json, "what"),
              .job = job_in(json),
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
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640)};
  if (file.get() < 0) return file_error(path, errno);
  hand_over(file.get(), path);
  std::string before = ends_in_half_line(file.get()) ? "\n" : "";
  for (const Event& event : events) {
    const std::string line = std::exchange(before, {}) + to_line(event) + '\n';
    const ssize_t put = ::write(file.get(), line.data(), line.size());
    if (put < 0) return file_error(path, errno);
    if (static_cast<std::size_t>(put) < line.size()) return file_error(path, ENOSPC);
  }
  if (static_cast<std::size_t>(status_of(file.get()).st_size) > most) rotate(state_dir, file.get());
  return Done{};
}

void keep_in_history(const std::string& state_dir, std::span<const Event> events, const Log& log) {
  if (state_dir.empty()) return;
  const auto done = append_history(state_dir, events);
  if (done) return;
  const std::initializer_list<Field> fields = {{"why", done.error().what},
                                               {"then", "flexctl explain will not know of it"}};
  if (done.error().kind == ErrorKind::NotFound)
    log.debug("history_not_written", fields);
  else
    log.warning("history_not_written", fields);
}

Result<Done> read_history(const std::string& state_dir,
                          HistoryMark& mark,
                          const std::function<void(Event)>& take) {
  const std::string path = history_path(state_dir);
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (file.get() < 0) return file_error(path, errno);
  const struct stat status = status_of(file.get());
  const std::uint64_t now_in = status.st_ino;
  // A file that is shorter than it was is another one that got the same number.
  const bool is_same =
      mark.file == now_in && mark.offset <= static_cast<std::uint64_t>(status.st_size);
  if (!is_same) {
    // What was written to the older file after the last look, or all of it at the first.
    const Descriptor older{
        ::open(older_path(state_dir).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    const std::uint64_t before = older.get() < 0 ? now_in : status_of(older.get()).st_ino;
    // Renamed at this very moment, it is the one that is about to be read.
    if (before != now_in) {
      const bool is_known = before == mark.file;
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
