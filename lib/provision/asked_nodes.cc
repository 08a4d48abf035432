// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/provision/asked_nodes.h"

#include "lib/core/state_file.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <sys/stat.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flex {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostText = std::size_t{4} << 20U;
/// A list may be a little older than the answer to the call before it; so may the other
/// controller's clock be.
constexpr Seconds kSlack = 10s;
/// Whoever has not written an answer by then is dead, and Google has ended what it was asked for.
constexpr Seconds kLongestAsk = 15min;
/// Without an answer the request may still be made.
constexpr Seconds kUnknown = 1min;
constexpr std::chrono::milliseconds kLockPatience = 5s;

bool is_over(const AskedEntry& entry, TimePoint now) {
  return now - (entry.answered == TimePoint{} ? entry.begun : entry.answered) >= kLongestAsk;
}

std::optional<TimePoint> parse_time(std::string_view text) {
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return TimePoint{Seconds{seconds}};
}

/// The words of a line: "begun answered by nodes".
std::optional<AskedEntry> parse_line(std::string_view line) {
  std::array<std::string_view, 4> words{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t end = i + 1 == words.size() ? line.size() : line.find(' ');
    if (end == std::string_view::npos || end == 0) return std::nullopt;
    words[i] = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  const auto begun = parse_time(words[0]);
  const auto answered = parse_time(words[1]);
  auto nodes = expand_hostlist(std::string(words[3]));
  if (!begun || !answered || !nodes) return std::nullopt;
  return AskedEntry{.begun = *begun,
                    .answered = *answered,
                    .by = std::string(words[2]),
                    .nodes = *std::move(nodes)};
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name.front() == '\0') return "localhost";
  return name.data();
}

/// True if the process that wrote "program@host:pid" was on this host and is gone.
bool is_gone(std::string_view by) {
  const std::size_t at = by.find('@');
  const std::size_t colon = by.rfind(':');
  if (at == std::string_view::npos || colon == std::string_view::npos || colon < at) return false;
  if (by.substr(at + 1, colon - at - 1) != host_name()) return false;
  const std::string_view digits = by.substr(colon + 1);
  ::pid_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  if (error != std::errc{} || end != digits.data() + digits.size() || pid <= 0) return false;
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

bool is_abandoned(const AskedEntry& entry) {
  return entry.answered == TimePoint{} && is_gone(entry.by);
}

/// Its last call may still be on its way. True if there was one.
bool note_abandoned(AskedNodes& asked, TimePoint now) {
  bool is_changed = false;
  for (AskedEntry& entry : asked) {
    if (!is_abandoned(entry)) continue;
    entry.answered = now + kUnknown;
    is_changed = true;
  }
  return is_changed;
}

/// When the file was last written.
std::optional<TimePoint> written_at(const std::string& path) {
  struct ::stat about {};

  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return TimePoint{Seconds{about.st_mtim.tv_sec}};
}

}  // namespace

std::string to_text(const AskedNodes& asked) {
  std::string text;
  for (const AskedEntry& entry : asked) {
    text += fmt::format("{} {} {} {}\n",
                        entry.begun.time_since_epoch().count(),
                        entry.answered.time_since_epoch().count(),
                        entry.by,
                        fold_hostlist(entry.nodes));
  }
  return text;
}

Result<AskedNodes> parse_asked_nodes(std::string_view text) {
  AskedNodes asked;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    auto entry = end == std::string_view::npos ? std::nullopt : parse_line(text.substr(0, end));
    if (!entry)
      return Error{ErrorKind::Invalid, "not a list of lines 'SECONDS SECONDS PROGRAM NODES'"};
    asked.push_back(*std::move(entry));
    text.remove_prefix(end + 1);
  }
  return asked;
}

std::set<NodeName> find_unseen(const AskedNodes& asked, TimePoint looked, TimePoint now) {
  std::set<NodeName> unseen;
  for (const AskedEntry& entry : asked) {
    const bool is_shown = entry.answered != TimePoint{} && entry.answered + kSlack <= looked;
    if (!is_shown && !is_over(entry, now)) unseen.insert(entry.nodes.begin(), entry.nodes.end());
  }
  return unseen;
}

AskedFile::AskedFile(std::string state_dir, std::string_view program)
    : state_dir_(std::move(state_dir)),
      by_(fmt::format("{}@{}:{}", program, host_name(), ::getpid())) {}

Result<AskedNodes> AskedFile::load() const {
  const std::string path = state_dir_ + "/asked";
  const auto text = read_small_file(path, kMostText);
  if (!text && text.error().kind == ErrorKind::NotFound) return AskedNodes{};
  if (!text) return text.error();
  auto asked = parse_asked_nodes(*text);
  if (!asked) return asked.error().in(path);
  return asked;
}

Result<AskedNodes> AskedFile::load_for_change(TimePoint now) const {
  auto asked = load();
  if (asked || asked.error().kind != ErrorKind::Invalid) return asked;
  // Whoever wrote into it has an answer by then, or is dead.
  const auto written = written_at(state_dir_ + "/asked");
  if (written && now - *written >= kLongestAsk) return AskedNodes{};
  return Error{ErrorKind::Invalid,
               fmt::format("{}; it is written anew a quarter of an hour after it was damaged",
                           asked.error().what)};
}

Result<Done> AskedFile::change(TimePoint now, const std::function<bool(AskedNodes&)>& edit) const {
  if (state_dir_.empty()) return Error{ErrorKind::NotFound, "the state directory is not known"};
  if (auto made = make_directory(state_dir_); !made) return made.error();
  const auto lock = FileLock::wait(state_dir_ + "/asked.lock", kLockPatience);
  if (!lock) return lock.error();
  auto asked = load_for_change(now);
  if (!asked) return asked.error();
  const bool is_noted = note_abandoned(*asked, now);
  if (!edit(*asked) && !is_noted) return Done{};
  return write_atomically(state_dir_ + "/asked", to_text(*asked));
}

Result<AskedNodes> AskedFile::load_and_tidy(TimePoint now) {
  auto asked = load();
  if (!asked || std::none_of(asked->begin(), asked->end(), is_abandoned)) return asked;
  const auto changed = change(now, [&](AskedNodes& tidied) {
    asked = tidied;
    return false;
  });
  if (!changed) return changed.error();
  return asked;
}

Result<Done> AskedFile::reserve(TimePoint now, const Choose& choose) {
  return change(now, [&](AskedNodes& asked) {
    std::vector<NodeName> nodes = choose(asked);
    if (nodes.empty()) return false;
    std::erase_if(asked, [&](const AskedEntry& entry) { return is_over(entry, now); });
    asked.push_back({.begun = now, .answered = {}, .by = by_, .nodes = std::move(nodes)});
    return true;
  });
}

Result<Done> AskedFile::settle(TimePoint now, const Answers& answers) {
  return change(now, [&](AskedNodes& asked) {
    AskedNodes unknown;
    for (AskedEntry& entry : asked) {
      if (entry.by != by_ || entry.answered != TimePoint{}) continue;
      entry.answered = now;
      AskedEntry later{
          .begun = entry.begun, .answered = now + kUnknown, .by = entry.by, .nodes = {}};
      std::erase_if(entry.nodes, [&](const NodeName& node) {
        if (answers.unknown.contains(node)) later.nodes.push_back(node);
        return answers.unknown.contains(node) || answers.refused.contains(node);
      });
      if (!later.nodes.empty()) unknown.push_back(std::move(later));
    }
    asked.insert(asked.end(), unknown.begin(), unknown.end());
    // Nobody's look is older than this.
    std::erase_if(
        asked, [&](const AskedEntry& entry) { return entry.nodes.empty() || is_over(entry, now); });
    return true;
  });
}

}  // namespace flex
