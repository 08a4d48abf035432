// SPDX-License-Identifier: GPL-2.0-or-later
// A small HTTP/1.1 server on loopback for the test of the real client.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace flex {

/// A thread per connection, keep-alive. The handler gets the whole request (head and body) and
/// gives the whole reply; an empty one closes the connection without a word.
class LoopbackServer {
 public:
  using Handler = std::function<std::string(const std::string& request)>;

  explicit LoopbackServer(Handler handler);
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer();

  [[nodiscard]] std::string url(const std::string& path) const;

  [[nodiscard]] int connections() const { return connections_; }

  [[nodiscard]] int most_at_once() const { return most_at_once_; }

 private:
  void accept_all();
  void serve(int fd);

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<int> at_once_{0};
  std::atomic<int> most_at_once_{0};
  std::mutex mutex_{};
  std::vector<int> open_{};
  std::vector<std::thread> threads_{};
  std::thread acceptor_{};
};

/// "HTTP/1.1 <status> …" with its length.
[[nodiscard]] std::string http_reply(int status,
                                     const std::string& body,
                                     const std::string& headers = {});

}  // namespace flex
