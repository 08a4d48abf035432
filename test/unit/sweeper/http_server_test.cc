// SPDX-License-Identifier: GPL-2.0-or-later
// The server over real sockets; who may see what is in http_rules_test.cc.
#include "sweeper/http_server.h"

#include "test/support/catch.h"

#include <arpa/inet.h>
#include <chrono>
#include <fstream>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace flex;

namespace {

struct Served {
  std::vector<std::string> lines{};
  Log log{[this](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::Debug};
  HttpServer server;
  SweeperConfig config{};

  explicit Served(const HttpLimits& limits = {}) : server(log, limits) {
    config.listen = "127.0.0.1:0";
  }

  void keep_up() { server.keep_up(config, {}); }

  [[nodiscard]] int port() const {
    const std::string address = server.address();
    return address.empty() ? 0 : std::stoi(address.substr(address.rfind(':') + 1));
  }
};

long resident_kib() {
  long pages = 0;
  long resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

int connect_to(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  ::close(fd);
  return -1;
}

std::string ask(int port, const std::string& request) {
  const int fd = connect_to(port);
  if (fd < 0) return "no connection";
  (void)!::write(fd, request.data(), request.size());
  std::string answer;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    answer.append(buffer, static_cast<std::size_t>(got));
  ::close(fd);
  return answer;
}

std::string get(int port, const std::string& path, const std::string& verb = "GET") {
  return ask(port, verb + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

}  // namespace

TEST_CASE("http server: serves what was published last") {
  Served served;
  served.keep_up();
  REQUIRE(served.port() > 0);
  served.server.publish({.status = "{\"a\":1}\n", .metrics = "m 1\n", .health = {}});
  CHECK_THAT(get(served.port(), "/status.json"), ContainsSubstring("{\"a\":1}"));
  served.server.publish({.status = "{\"a\":2}\n", .metrics = "m 2\n", .health = {}});
  const std::string status = get(served.port(), "/status.json");
  CHECK_THAT(status, StartsWith("HTTP/1.1 200"));
  CHECK_THAT(status, ContainsSubstring("{\"a\":2}"));
  CHECK_THAT(status, ContainsSubstring("Content-Security-Policy: default-src 'none'"));
  CHECK_THAT(status, ContainsSubstring("X-Content-Type-Options: nosniff"));
  CHECK_THAT(status, ContainsSubstring("Cache-Control: no-store"));
  CHECK_THAT(get(served.port(), "/metrics"), ContainsSubstring("m 2"));
  CHECK_THAT(get(served.port(), "/metrics"), ContainsSubstring("text/plain; version=0.0.4"));
  CHECK_THAT(get(served.port(), "/"), ContainsSubstring("<!DOCTYPE html>"));
  CHECK_THAT(get(served.port(), "/nowhere"), StartsWith("HTTP/1.1 404"));
  CHECK_THAT(get(served.port(), "/metrics", "POST"), StartsWith("HTTP/1.1 405"));
  const std::string head = get(served.port(), "/metrics", "HEAD");
  CHECK_THAT(head, StartsWith("HTTP/1.1 200"));
  CHECK_THAT(head, !ContainsSubstring("m 2"));
}

TEST_CASE("http server: however many ranges are asked for, the text is served once") {
  Served served;
  served.keep_up();
  served.server.publish({.status = "", .metrics = "m 1\n", .health = {}});
  std::string ranges = "0-3";
  for (int i = 1; i < 2000; ++i) ranges += ",0-3";
  for (const std::string& range : {std::string("0-0"), ranges}) {
    const std::string answer =
        ask(served.port(),
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nRange: bytes=" + range + "\r\n\r\n");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200"));
    CHECK_THAT(answer, EndsWith("\r\n\r\nm 1\n"));
    CHECK(answer.size() < 2000);
  }
}

TEST_CASE("http server: a port that is taken is tried again, and told once") {
  Served first;
  first.keep_up();
  Served second;
  second.config.listen = first.server.address();
  second.keep_up();
  second.keep_up();
  CHECK(second.server.address().empty());
  REQUIRE(second.lines.size() == 1);
  CHECK_THAT(second.lines[0], ContainsSubstring("http_off"));
  first.config.listen = "off";
  first.keep_up();
  CHECK(first.server.address().empty());
  second.keep_up();
  CHECK(second.server.address() == second.config.listen);
}

TEST_CASE("http server: a token file that is no good means no server") {
  Served served;
  served.config.listen_token_file = "/nowhere/token";
  served.keep_up();
  CHECK(served.server.address().empty());
  REQUIRE(served.lines.size() == 1);
  CHECK_THAT(served.lines[0], ContainsSubstring("token file"));
}

TEST_CASE("http server: a line without an end is cut off, and is not kept") {
  Served served;
  served.keep_up();
  const long before = resident_kib();
  std::vector<int> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(connect_to(served.port()));
  const std::string much(std::size_t{1} << 16U, 'x');
  std::size_t sent = 0;
  for (const int fd : clients) {
    const std::string begin = "GET /metrics HTTP/1.1\r\nX-Long: ";
    (void)!::send(fd, begin.data(), begin.size(), MSG_NOSIGNAL);
    // 256 MiB, if it is let.
    for (int i = 0; i < 4096 && ::send(fd, much.data(), much.size(), MSG_NOSIGNAL) > 0; ++i)
      sent += much.size();
  }
  CHECK(sent < std::size_t{256} << 20U);
  CHECK(resident_kib() - before < 64 * 1024);
  for (const int fd : clients) ::close(fd);
  CHECK_THAT(get(served.port(), "/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("http server: a client that sends a byte now and then is hung up on") {
  constexpr std::chrono::milliseconds kLimit{400};
  Served served({.time = kLimit});
  served.keep_up();
  const int fd = connect_to(served.port());
  const auto begin = std::chrono::steady_clock::now();
  // Long before httplib's own limit, which is between two bytes.
  while (::send(fd, "x", 1, MSG_NOSIGNAL) == 1 &&
         std::chrono::steady_clock::now() - begin < std::chrono::seconds{20})
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  CHECK(std::chrono::steady_clock::now() - begin > kLimit / 2);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{15});
  ::close(fd);
  CHECK_THAT(get(served.port(), "/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("http server: clients that say nothing hold up neither it nor its end") {
  std::vector<int> silent;
  std::chrono::steady_clock::time_point begin;
  {
    Served served;
    served.keep_up();
    for (int i = 0; i < 20; ++i) silent.push_back(connect_to(served.port()));
    const std::string half = "GET /metrics HTTP/1.1\r\nX-Slow: ";
    for (const int fd : silent) (void)!::write(fd, half.data(), half.size());
    served.server.publish({.status = "", .metrics = "m 1\n", .health = {}});
    served.keep_up();
    begin = std::chrono::steady_clock::now();
  }
  // Nobody waits until they have timed out.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds{15});
  for (const int fd : silent) ::close(fd);
}
