// SPDX-License-Identifier: GPL-2.0-or-later
// Owns a file descriptor; a negative one is none.
#pragma once

#include <unistd.h>
#include <utility>

namespace flex {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}

  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  [[nodiscard]] int get() const { return fd_; }

  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace flex
