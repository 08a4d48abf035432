// SPDX-License-Identifier: GPL-2.0-or-later
// The door to the network: many requests side by side on one thread.
#pragma once

#include "lib/core/result.h"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace flex {

struct HttpRequest {
  std::string method = "GET";
  std::string url{};
  std::vector<std::string> headers{};  ///< "Name: value"
  std::string body{};
  std::chrono::milliseconds timeout{30000};
  /// Never printed, never in an error: a bearer token.
  std::string bearer{};
};

struct HttpResponse {
  int status = 0;
  std::string body{};
  std::string content_type{};
  std::string metadata_flavor{};
  std::optional<std::chrono::milliseconds> retry_after{};
  std::optional<std::chrono::sys_seconds> date{};  ///< the server's clock
};

class HttpClient {
 public:
  using Answer = std::function<void(Result<HttpResponse>)>;
  virtual ~HttpClient() = default;
  /// Any HTTP status is a response. Retry: could not connect, lost connection, time-out. Invalid: a
  /// URL that is not allowed. Starts at once if fewer than max_in_flight are under way, else as
  /// soon as one ends, in order.
  virtual void send(HttpRequest request, Answer answer) = 0;
  /// Calls `what` after `delay`, during run(). At the deadline what still waits is called at once;
  /// past it only a delay of 0 is taken, so that everything ends.
  virtual void after(std::chrono::milliseconds delay, std::function<void()> what) = 0;
  /// Until nothing is under way and no timer waits, or until the deadline; then everything left is
  /// answered with Retry.
  virtual void run(std::chrono::steady_clock::time_point deadline) = 0;

  /// The clock that after() and run() go by.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::now();
  }
};

}  // namespace flex
