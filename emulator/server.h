// SPDX-License-Identifier: GPL-2.0-or-later
// The network in front of the Front.
#pragma once

#include "emulator/front.h"

#include <functional>
#include <memory>
#include <string>

namespace flex::emulator {

class Server {
 public:
  explicit Server(Front& front);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The port it listens on (port 0: any free one), or -1.
  [[nodiscard]] int bind(const std::string& host, int port);
  /// Serves until stop().
  void run();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flex::emulator
