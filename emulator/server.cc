// SPDX-License-Identifier: GPL-2.0-or-later
// cpp-httplib, from 0.11 to 0.41; the only file that includes it.
#include "emulator/server.h"

#include <httplib.h>

#include <arpa/inet.h>
#include <cerrno>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

namespace flex::emulator {

namespace {

/// A thread serves one connection at a time, and a wait for an operation holds it.
constexpr std::size_t kThreads = 256;
/// Of connections that come at once; httplib has 5, and the sixth waits a second.
constexpr int kBacklog = 1024;

int port_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return -1;
}

/// httplib does not show its connections: this one is found by its peer's port. -1: it is gone.
int find_connection(int local_port, int peer_port) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const int last = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65536));
  for (int fd = 3; fd < last; ++fd) {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    socklen_t size = sizeof local;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) continue;
    size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (port_of(local) != local_port || port_of(peer) != peer_port) continue;
    return fd;
  }
  return -1;
}

/// httplib always answers. To answer nothing, the connection is shut.
void drop_connection(int local_port, int peer_port) {
  const int fd = find_connection(local_port, peer_port);
  if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

/// True once the client has closed the connection, or died.
bool is_closed(int fd) {
  char byte = 0;
  const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

HttpIn read_request(const httplib::Request& request) {
  HttpIn in{.verb = request.method,
            .path = request.path,
            .authorization = request.get_header_value("Authorization"),
            .metadata_flavor = request.get_header_value("Metadata-Flavor"),
            .content_type = request.get_header_value("Content-Type"),
            .origin = request.get_header_value("Origin"),
            .body = request.body};
  // Not request.params: a form's fields would be among them.
  const std::size_t mark = request.target.find('?');
  if (mark != std::string::npos) in.query = parse_query(request.target.substr(mark + 1));
  return in;
}

}  // namespace

struct Server::Impl {
  Front& front;
  httplib::Server http{};
  int port = 0;
  int listener = -1;

  void answer(const httplib::Request& request, httplib::Response& response) {
    HttpIn in = read_request(request);
    // Looked for only by a call that is held; the connection stays this thread's until it answers.
    in.is_gone = [this, peer = request.remote_port, fd = -1]() mutable {
      if (fd < 0) fd = find_connection(port, peer);
      return fd < 0 || is_closed(fd);
    };
    HttpOut out = front.handle(in);
    if (out.is_dropped) {
      drop_connection(port, request.remote_port);
      response.set_header("Connection", "close");
      return;
    }
    response.status = out.status;
    for (const auto& [name, value] : out.headers) response.set_header(name, value);
    // httplib prefers brotli, at a level that takes a second for a long list, and compresses by the
    // exact type. Google does gzip.
    const bool wants_brotli =
        request.get_header_value("Accept-Encoding").find("br") != std::string::npos;
    response.set_content(out.body,
                         wants_brotli ? out.content_type + "; charset=UTF-8" : out.content_type);
  }
};

Server::Server(Front& front) : impl_(new Impl{.front = front}) {
  httplib::Server& http = impl_->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  http.set_keep_alive_max_count(1000000);
  http.set_keep_alive_timeout(60);
  http.set_tcp_nodelay(true);
  http.set_socket_options([this](int fd) {
    httplib::default_socket_options(fd);
    impl_->listener = fd;
  });
  http.set_payload_max_length(64U << 20U);
  const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
    impl_->answer(request, response);
  };
  // Before the body is read: httplib waits for one even where no length was given.
  http.set_pre_routing_handler([this](const httplib::Request& request,
                                      httplib::Response& response) {
    const bool has_body =
        request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0";
    if (has_body || request.has_header("Transfer-Encoding"))
      return httplib::Server::HandlerResponse::Unhandled;
    impl_->answer(request, response);
    // 0.41 then waits for the body that was not announced, and would take the next request for it.
    if (request.method != "GET" && !request.has_header("Content-Length"))
      response.set_header("Connection", "close");
    return httplib::Server::HandlerResponse::Handled;
  });
  http.Get(".*", handler);
  http.Post(".*", handler);
  http.Put(".*", handler);
  http.Patch(".*", handler);
  http.Delete(".*", handler);
}

Server::~Server() = default;

int Server::bind(const std::string& host, int port) {
  impl_->port = port;
  if (port == 0)
    impl_->port = impl_->http.bind_to_any_port(host);
  else if (!impl_->http.bind_to_port(host, port))
    impl_->port = -1;
  if (impl_->port >= 0) listen(impl_->listener, kBacklog);
  return impl_->port;
}

void Server::run() {
  impl_->http.listen_after_bind();
}

void Server::stop() {
  impl_->http.stop();
}

}  // namespace flex::emulator
