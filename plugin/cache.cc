// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/cache.h"

#include "lib/core/descriptor.h"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace flex::plugin {

namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

Error failed(ErrorKind kind, const std::string& path, const std::string& why) {
  return {kind, path + ": " + why, "CACHE"};
}

Error failed(const std::string& path) {
  const int number = errno;
  return failed(number == ENOENT ? ErrorKind::NotFound : ErrorKind::Denied,
                path,
                std::error_code(number, std::generic_category()).message());
}

/// A descriptor of the directory, which nobody but us can have put anything in.
Result<int> open_directory(const std::string& path) {
  Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.get() < 0) return failed(path);

  struct stat seen {};

  if (::fstat(directory.get(), &seen) != 0) return failed(path);
  if (seen.st_uid != ::geteuid() || (seen.st_mode & kWritableByOthers) != 0)
    return failed(ErrorKind::Denied, path, "not slurmd's own, or others may write to it");
  return directory.release();
}

Result<int> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) return failed(path);
  return open_directory(path);
}

/// flock() has no time limit of its own.
bool is_locked(int fd, Deadline deadline) {
  constexpr std::chrono::milliseconds kPause{10};
  for (;;) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;
    if (std::chrono::steady_clock::now() + kPause >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
}

/// The line, if there is a whole one: whoever writes may die.
std::optional<std::string> read_line(int fd) {
  std::array<char, kMaxAnswer + 1> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  if (size <= 0 || text.at(static_cast<std::size_t>(size) - 1) != '\n') return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(size) - 1);
}

/// What cannot be kept is asked for again.
void write_line(int fd, const std::string& text) {
  const std::string line = text + '\n';
  if (::ftruncate(fd, 0) != 0) return;
  if (::pwrite(fd, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size()))
    static_cast<void>(::ftruncate(fd, 0));
}

}  // namespace

Result<std::string> read_or_ask(const CachePlace& place,
                                Deadline deadline,
                                const std::function<bool(const std::string&)>& is_good,
                                const std::function<std::string()>& ask) {
  const auto opened = make_directory(place.directory);
  if (!opened) return opened.error();
  const Descriptor directory(*opened);
  const std::string name = std::to_string(place.job);
  const Descriptor file(::openat(
      directory.get(), name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  const std::string path = place.directory + '/' + name;
  if (file.get() < 0) return failed(path);
  if (!is_locked(file.get(), deadline))
    return failed(ErrorKind::Retry, path, "another step of the job is still asking");
  auto text = read_line(file.get());
  if (!text || !is_good(*text)) {
    text = ask();
    write_line(file.get(), *text);
  }
  // A child that asked may still have the descriptor.
  ::flock(file.get(), LOCK_UN);
  return *text;
}

Result<Done> remove_cached(const CachePlace& place) {
  const auto opened = open_directory(place.directory);
  if (!opened && opened.error().kind == ErrorKind::NotFound) return Done{};
  if (!opened) return opened.error();
  const Descriptor directory(*opened);
  const std::string name = std::to_string(place.job);
  if (::unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return failed(place.directory + '/' + name);
  return Done{};
}

}  // namespace flex::plugin
