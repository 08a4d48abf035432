// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/http_connections.h"

#include <charconv>
#include <fcntl.h>
#include <filesystem>
#include <linux/tcp.h>  // not with <netinet/tcp.h>, whose tcp_info is too old
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace flex {

namespace {

/// As long as anybody is connected: what may come in meanwhile is what a client can make us keep.
constexpr std::chrono::milliseconds kTick{20};

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return -1;
}

/// A client's connection, not the socket that listens.
bool is_connection(int fd, int port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return false;
  if (port_of(address) != port) return false;
  size = sizeof address;
  return ::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
}

std::uint64_t bytes_received(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_bytes_received : 0;
}

/// For httplib it is over; the client is told so as soon as httplib has closed it.
void hang_up(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::shutdown(fd, SHUT_RDWR);
}

/// No two sockets have the same.
std::uint64_t identity_of(int fd) {
  struct stat found {};

  return ::fstat(fd, &found) == 0 ? found.st_ino : 0;
}

}  // namespace

void visit_connections(int port, const std::function<void(int)>& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (!is_connection(fd, port)) continue;
    // By now the number may be another thing's: what is looked at and hung up on is our own copy.
    const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) continue;
    if (is_connection(own, port)) visit(own);
    ::close(own);
  }
}

HttpReaper::~HttpReaper() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  news_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HttpReaper::start(int port) {
  port_ = port;
  thread_ = std::thread([this] { run(); });
}

void HttpReaper::wake() {
  {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
  }
  news_.notify_one();
}

void HttpReaper::run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    const auto is_needed = [this] { return has_news_ || is_over_; };
    if (since_.empty())
      news_.wait(lock, is_needed);
    else
      news_.wait_for(lock, kTick, [this] { return is_over_; });
    if (is_over_) return;
    has_news_ = false;
    lock.unlock();
    look();
    lock.lock();
  }
}

void HttpReaper::look() {
  const auto now = Steady::now();
  std::map<std::uint64_t, Steady::time_point> still;
  visit_connections(port_, [&](int fd) {
    const std::uint64_t id = identity_of(fd);
    const auto known = since_.find(id);
    const auto since = known == since_.end() ? now : known->second;
    still[id] = since;
    if (now - since > limits_.time || bytes_received(fd) > limits_.bytes) hang_up(fd);
  });
  since_ = std::move(still);
}

}  // namespace flex
