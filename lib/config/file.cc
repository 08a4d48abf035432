// SPDX-License-Identifier: GPL-2.0-or-later
// The file itself: who may write it, and its text.
#include "lib/config/load.h"
#include "lib/config/problems.h"
#include "lib/config/tree.h"
#include "lib/core/trust.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace flex {

namespace {

class OpenFile {
 public:
  // O_NONBLOCK: a FIFO in the file's place must not hang slurmctld's ResumeProgram.
  explicit OpenFile(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {}

  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  ~OpenFile() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

std::string system_error(int number) {
  return std::error_code(number, std::generic_category()).message();
}

void report_open(const std::string& path, int number, Problems& problems) {
  if (number == ENOENT || number == ENOTDIR) {
    problems.add({},
                 "there is no such file",
                 "put it beside slurm.conf, or name it with --config or $FLEX_START_CONFIG");
  } else if (number == EACCES) {
    problems.add(
        {},
        "cannot be read: " + system_error(number),
        fmt::format(
            "make it readable for user id {}, under which this runs: {}", ::geteuid(), path));
  } else {
    problems.add({}, "cannot be opened: " + system_error(number));
  }
}

/// Whoever can write the file decides which VMs are made and deleted.
bool is_trusted(const std::string& path,
                const struct stat& info,
                const std::optional<uid_t>& slurm_user,
                Problems& problems) {
  if (!S_ISREG(info.st_mode)) {
    problems.add({},
                 S_ISDIR(info.st_mode) ? "this is a directory" : "this is not a regular file",
                 "name the file flex-start.yaml itself");
    return false;
  }
  bool is_good = true;
  if (!is_trusted_owner(info.st_uid, slurm_user)) {
    problems.add({},
                 fmt::format("owned by user id {}, who is neither root nor the user running this",
                             info.st_uid),
                 fmt::format("chown root {}", path));
    is_good = false;
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    problems.add(
        {},
        fmt::format("mode {:04o} lets others than its owner write it", info.st_mode & 07777U),
        fmt::format("chmod go-w {}", path));
    is_good = false;
  }
  return is_good;
}

std::optional<std::string> read_all(int fd, Problems& problems) {
  std::string text;
  std::array<char, 16384> buffer{};
  // One byte over the limit is enough for parse_config to refuse it.
  while (text.size() <= kMaxConfigSize) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      problems.add({}, "cannot be read: " + system_error(errno));
      return std::nullopt;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::optional<std::string> read_file(const std::string& path,
                                     const std::optional<uid_t>& slurm_user,
                                     Problems& problems) {
  const OpenFile file{path};
  if (file.fd() < 0) {
    report_open(path, errno, problems);
    return std::nullopt;
  }

  struct stat info {};

  if (::fstat(file.fd(), &info) != 0) {
    problems.add({}, "cannot be looked at: " + system_error(errno));
    return std::nullopt;
  }
  if (!is_trusted(path, info, slurm_user, problems)) return std::nullopt;
  return read_all(file.fd(), problems);
}

}  // namespace

LoadedConfig load_config(const std::string& path, const std::optional<uid_t>& slurm_user) {
  Problems problems{path};
  const auto text = read_file(path, slurm_user, problems);
  if (text) return parse_config(*text, path);
  LoadedConfig loaded;
  loaded.config.file = path;
  loaded.problems = problems.take();
  return loaded;
}

}  // namespace flex
