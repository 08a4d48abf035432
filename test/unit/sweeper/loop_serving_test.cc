// SPDX-License-Identifier: GPL-2.0-or-later
// The loop as a daemon with its HTTP server, in a thread of the test.
#include "sweeper/loop.h"
#include "test/support/builders.h"
#include "test/support/catch.h"
#include "test/support/fake_cloud.h"
#include "test/support/fake_scheduler.h"

#include <arpa/inet.h>
#include <csignal>
#include <filesystem>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace flex;
using namespace flex::test;

namespace {

using Milliseconds = std::chrono::milliseconds;

/// Its rounds take a while, so that what is served meanwhile can be seen.
class SlowScheduler : public FakeScheduler {
 public:
  Result<Controller> find_controller() override {
    std::this_thread::sleep_for(Milliseconds{400});
    return FakeScheduler::find_controller();
  }
};

/// A port of this machine's that is taken until free().
class Port {
 public:
  Port() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    (void)::bind(fd_, reinterpret_cast<sockaddr*>(&address_), size);
    (void)::listen(fd_, 1);
    (void)::getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size);
  }

  ~Port() { free(); }

  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  void free() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  [[nodiscard]] std::string text() const {
    return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port));
  }

  /// What is served there; empty: nobody listens.
  [[nodiscard]] std::string get(const std::string& path) const {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    std::string answer;
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) == 0) {
      const std::string request = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
      (void)!::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
      char buffer[4096];
      for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
        answer.append(buffer, static_cast<std::size_t>(got));
    }
    ::close(fd);
    return answer;
  }

 private:
  int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

/// A sweeper that serves on the port, until it is destroyed.
class Daemon {
 public:
  Daemon(const Port& port, const Controller& controller) {
    std::filesystem::remove_all(dir);
    std::filesystem::create_directory(dir);
    LoopParts parts;
    parts.config = config({nodeset("a", nodes("a", 2))});
    parts.config.sweeper.listen = port.text();
    parts.cluster = "hpc";
    auto slurm = std::make_unique<SlowScheduler>();
    slurm->controller = controller;
    slurm->add_node("a-0");
    slurm->add_node("a-1");
    parts.scheduler = std::move(slurm);
    parts.cloud = std::make_unique<FakeCloud>();
    hold_signals();
    thread_ = std::thread([this, parts = std::move(parts)]() mutable {
      Loop loop(
          std::move(parts),
          {.is_dry_run = false, .rounds = 0, .interval = Seconds{1}, .state_dir = dir.string()},
          log_);
      (void)loop.run();
    });
  }

  ~Daemon() {
    ::kill(::getpid(), SIGTERM);  // only the loop takes it
    thread_.join();
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
    ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    std::filesystem::remove_all(dir);
  }

  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("flex-daemon-" + std::to_string(::getpid()));

 private:
  Log log_{[](LogLevel, std::string_view) {}, LogLevel::Error};
  std::thread thread_{};
};

template <class Condition>
bool wait_until(const Condition& holds) {
  for (int i = 0; i < 3000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(Milliseconds{10});
  }
  return false;
}

}  // namespace

TEST_CASE("loop: a server that comes late serves what is known by then") {
  Port port;
  const Daemon daemon(port, {.is_here = true, .host = "here"});
  REQUIRE(wait_until([&] { return std::filesystem::exists(daemon.dir / "status.json"); }));
  port.free();
  std::string first;
  REQUIRE(wait_until([&] { return !(first = port.get("/status.json")).empty(); }));
  CHECK_THAT(first, StartsWith("HTTP/1.1 200"));
  CHECK_THAT(first, ContainsSubstring("\"cluster\": \"hpc\""));
}

TEST_CASE("loop: a host that looks every five minutes is given that time before it is ill") {
  Port port;
  port.free();
  const Daemon daemon(port, {.is_here = false, .is_candidate = false, .host = "other"});
  REQUIRE(wait_until([&] {
    return port.get("/status.json").find("\"state\": \"passive\"") != std::string::npos;
  }));
  CHECK_THAT(port.get("/status.json"), ContainsSubstring("\"interval_seconds\": 300"));
}
