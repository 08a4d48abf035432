// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/state_file.h"

#include "lib/core/descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace flex {
namespace {

constexpr mode_t kFileMode = 0640;
constexpr mode_t kDirectoryMode = 0750;
/// More digits than a pid has.
constexpr std::size_t kMaxPidText = 32;

ErrorKind kind_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorKind::NotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorKind::Denied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EIO:
      return ErrorKind::Retry;
    default:
      return ErrorKind::Internal;
  }
}

Error to_error(int number, std::string_view doing, const std::string& path) {
  // The unit lets the sweeper write to Slurm's usual places only.
  const std::string_view hint =
      number == EROFS ? "; under systemd, name it in ReadWritePaths= (systemctl edit flex-sweeper)"
                      : "";
  return {kind_of(number),
          fmt::format("cannot {} '{}': {}{}",
                      doing,
                      path,
                      std::error_code(number, std::generic_category()).message(),
                      hint)};
}

/// 0, or the error's number.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// As much as there is, up to `limit`; 0, or the error's number.
int read_up_to(int fd, std::size_t limit, std::string& out) {
  std::array<char, 16384> buffer{};
  while (out.size() < limit) {
    const ssize_t count = ::read(fd, buffer.data(), std::min(buffer.size(), limit - out.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) break;
    out.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return 0;
}

/// "process 12", or "another process" where the file does not tell.
std::string holder_of(int fd) {
  std::string text;
  if (read_up_to(fd, kMaxPidText, text) != 0) text.clear();
  text.resize(std::min(text.find_first_not_of("0123456789"), text.size()));
  return text.empty() ? "another process" : "process " + text;
}

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

/// Writes, closes and names the file; 0, or the error's number.
int write_and_rename(int fd,
                     const std::string& from,
                     const std::string& to,
                     std::string_view text) {
  if (const int number = write_all(fd, text); number != 0) return number;
  // Whatever the umask is.
  if (::fchmod(fd, kFileMode) != 0) return errno;
  hand_over(fd, to);
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

void hand_over(int fd, const std::string& path) {
  struct stat owner {};

  struct stat own {};

  if (::geteuid() != 0 || ::stat(directory_of(path).c_str(), &owner) != 0) return;
  if (::fstat(fd, &own) != 0 || own.st_uid == owner.st_uid) return;
  (void)!::fchown(fd, owner.st_uid, owner.st_gid);
}

Result<Done> write_atomically(const std::string& path, std::string_view text) {
  const std::string fresh = path + ".new";
  const Descriptor file(::open(
      fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, kFileMode));
  if (file.get() < 0) return to_error(errno, "write", fresh);
  const int number = write_and_rename(file.get(), fresh, path, text);
  if (number == 0) return Done{};
  ::unlink(fresh.c_str());
  return to_error(number, "write", path);
}

Result<std::string> read_small_file(const std::string& path, std::size_t limit) {
  // O_NONBLOCK: a FIFO in its place must not hang us.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return to_error(errno, "read", path);

  struct stat info {};

  if (::fstat(file.get(), &info) != 0) return to_error(errno, "read", path);
  if (!S_ISREG(info.st_mode))
    return Error{ErrorKind::Invalid, fmt::format("'{}' is not a regular file", path)};
  std::string text;
  const int number = read_up_to(file.get(), limit + 1, text);
  if (number != 0) return to_error(number, "read", path);
  if (text.size() > limit)
    return Error{ErrorKind::Invalid, fmt::format("'{}' has more than {} bytes", path, limit)};
  return text;
}

Result<Done> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) == 0) {
    const Descriptor made(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    // Whatever the umask is.
    if (made.get() < 0 || ::fchmod(made.get(), kDirectoryMode) != 0)
      return to_error(errno, "set the mode of", path);
    hand_over(made.get(), path);
    return Done{};
  }
  const int number = errno;

  struct stat info {};

  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return Done{};
  return to_error(number, "make directory", path);
}

Result<FileLock> FileLock::acquire(const std::string& path) {
  Descriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW, kFileMode));
  if (file.get() < 0) return to_error(errno, "lock", path);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return to_error(errno, "lock", path);
    return Error{ErrorKind::Precondition,
                 fmt::format("'{}' is held by {}", path, holder_of(file.get())),
                 "LOCKED"};
  }
  hand_over(file.get(), path);
  const std::string pid = fmt::format("{}\n", ::getpid());
  ::fchmod(file.get(), kFileMode);  // for those who want to know whose it is; no harm if it fails
  if (::ftruncate(file.get(), 0) != 0) return to_error(errno, "write", path);
  if (const int number = write_all(file.get(), pid); number != 0)
    return to_error(number, "write", path);
  return FileLock(file.release());
}

Result<FileLock> FileLock::wait(const std::string& path, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto end = std::chrono::steady_clock::now() + patience;
  auto lock = acquire(path);
  while (!lock && lock.error().kind == ErrorKind::Precondition &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kPause);
    lock = acquire(path);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::~FileLock() {
  // Not removed: somebody may have opened it and be about to lock it.
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace flex
