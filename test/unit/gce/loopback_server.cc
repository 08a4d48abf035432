// SPDX-License-Identifier: GPL-2.0-or-later
#include "test/unit/gce/loopback_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace flex {
namespace {

/// Head and body of the next request; empty when the client has gone.
std::string read_request(int fd, std::string& buffer) {
  for (;;) {
    const auto head = buffer.find("\r\n\r\n");
    if (head != std::string::npos) {
      std::size_t length = 0;
      const auto field = buffer.find("Content-Length: ");
      if (field < head) length = std::stoul(buffer.substr(field + 16));
      const std::size_t whole = head + 4 + length;
      if (buffer.size() >= whole) {
        std::string request = buffer.substr(0, whole);
        buffer.erase(0, whole);
        return request;
      }
    }
    std::array<char, 4096> chunk{};
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) return {};
    buffer.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

LoopbackServer::LoopbackServer(Handler handler) : handler_(std::move(handler)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, length) != 0 || listen(listener_, 64) != 0) return;
  getsockname(listener_, generic, &length);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

LoopbackServer::~LoopbackServer() {
  shutdown(listener_, SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

std::string LoopbackServer::url(const std::string& path) const {
  return fmt::format("http://127.0.0.1:{}{}", port_, path);
}

void LoopbackServer::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    ++connections_;
    const std::lock_guard lock(mutex_);
    open_.push_back(fd);
    threads_.emplace_back([this, fd] { serve(fd); });
  }
}

void LoopbackServer::serve(int fd) {
  std::string buffer;
  for (;;) {
    const std::string request = read_request(fd, buffer);
    if (request.empty()) break;
    most_at_once_ = std::max<int>(most_at_once_, ++at_once_);
    const std::string reply = handler_(request);
    --at_once_;
    if (reply.empty() || send(fd, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) break;
  }
  const std::lock_guard lock(mutex_);
  std::erase(open_, fd);
  close(fd);
}

std::string http_reply(int status, const std::string& body, const std::string& headers) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
      status,
      headers,
      body.size(),
      body);
}

}  // namespace flex
