// SPDX-License-Identifier: GPL-2.0-or-later
// Small files of our own in a directory of our own. Losing them loses nothing but time, so nothing
// is forced to disk. NotFound, Denied or Retry (no space) say what is wrong.
#pragma once

#include "lib/core/result.h"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace flex {

/// What root has made, SlurmUser's programs must be able to write to: it is given to the owner of
/// the directory that it is in. The functions below do so with all that they make.
void hand_over(int fd, const std::string& path);

/// Whoever reads the file sees the old text or the new, never a part. One writer at a time: the
/// text goes through "<path>.new". Mode 0640.
[[nodiscard]] Result<Done> write_atomically(const std::string& path, std::string_view text);

/// Invalid if there is more than `limit` in it, or if it is no regular file.
[[nodiscard]] Result<std::string> read_small_file(const std::string& path, std::size_t limit);

/// Mode 0750; success if there is such a directory already. Its parent must be there.
[[nodiscard]] Result<Done> make_directory(const std::string& path);

/// A lock that one process can hold, until this object or the process ends. The file stays.
class FileLock {
 public:
  /// Does not wait. Precondition if another process holds it: the text names its pid.
  [[nodiscard]] static Result<FileLock> acquire(const std::string& path);
  /// Waits so long for whoever holds it.
  [[nodiscard]] static Result<FileLock> wait(const std::string& path,
                                             std::chrono::milliseconds patience);

  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace flex
