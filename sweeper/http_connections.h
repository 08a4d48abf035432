// SPDX-License-Identifier: GPL-2.0-or-later
// Hangs up on clients that send too much or take too long. httplib looks neither at how long a line
// or a header is, nor at how long a request takes as a whole, and does not show its connections.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace flex {

/// What one connection may take.
struct HttpLimits {
  std::chrono::milliseconds time{10'000};  ///< from its first sight until its answer is read
  std::uint64_t bytes = 65'536;            ///< that it may send; httplib keeps whole lines
};

/// Calls `visit` with a descriptor of its own for each connection of this process to our port: what
/// it does is done to that connection, even if httplib has closed it meanwhile.
void visit_connections(int port, const std::function<void(int)>& visit);

/// The thread that looks after them. It sleeps while there are none.
class HttpReaper {
 public:
  explicit HttpReaper(const HttpLimits& limits) : limits_(limits) {}

  ~HttpReaper();
  HttpReaper(const HttpReaper&) = delete;
  HttpReaper& operator=(const HttpReaper&) = delete;

  /// Throws std::system_error if there is no thread to be had.
  void start(int port);

  /// A client has come; from any thread.
  void wake();

 private:
  using Steady = std::chrono::steady_clock;

  void run();
  void look();

  const HttpLimits limits_;
  int port_ = -1;
  std::mutex mutex_{};
  std::condition_variable news_{};
  bool has_news_ = false;
  bool is_over_ = false;
  std::map<std::uint64_t, Steady::time_point> since_{};  ///< by socket; only the thread's
  std::thread thread_{};
};

}  // namespace flex
