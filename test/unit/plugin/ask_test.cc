// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/ask.h"

#include "test/support/catch.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace flex::plugin;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// Long, for a busy machine; the questions that wait for the end have a short one.
Deadline patient() {
  return Clock::now() + 60s;
}

bool has_children() {
  return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

/// What a signal's handler was, until this object ends.
class Handler {
 public:
  Handler(int number, void (*handler)(int)) : number_(number) {
    struct sigaction wanted {};

    wanted.sa_handler = handler;  // without SA_RESTART: calls are interrupted
    ::sigaction(number, &wanted, &before_);
  }

  Handler(const Handler&) = delete;
  Handler& operator=(const Handler&) = delete;

  ~Handler() { ::sigaction(number_, &before_, nullptr); }

 private:
  int number_;

  struct sigaction before_ {};
};

}  // namespace

TEST_CASE("ask_child: an answer, and no child left", "[plugin]") {
  CHECK(ask_child([] { return "yes"; }, patient()) == "yes");
  CHECK(ask_child([] { return ""; }, patient()) == "");
  CHECK(ask_child([] { return std::string(kMaxAnswer, 'x'); }, patient()) ==
        std::string(kMaxAnswer, 'x'));
  CHECK(!has_children());
}

TEST_CASE("ask_child: one that fails in any way is no answer, at once", "[plugin]") {
  CHECK(!ask_child([]() -> std::string { ::_exit(0); }, patient()));
  CHECK(!ask_child([]() -> std::string { std::exit(1); },
                   patient()));  // NOLINT(concurrency-mt-unsafe)
  CHECK(!ask_child([]() -> std::string { throw std::runtime_error("no"); }, patient()));
  CHECK(!ask_child(
      []() -> std::string {
        ::raise(SIGKILL);
        return "";
      },
      patient()));
  CHECK(!ask_child([] { return std::string(kMaxAnswer + 1, 'x'); }, patient()));
  CHECK(!has_children());
}

TEST_CASE("ask_child: one that hangs is ended at the deadline", "[plugin]") {
  const auto begin = Clock::now();
  CHECK(!ask_child(
      []() -> std::string {
        for (;;) ::pause();
      },
      begin + 300ms));
  CHECK(Clock::now() - begin >= 300ms);
  CHECK(Clock::now() - begin < 20s);
  CHECK(!has_children());
}

TEST_CASE("ask_child: one that takes no signal is ended, too", "[plugin]") {
  CHECK(!ask_child(
      []() -> std::string {
        sigset_t all{};
        ::sigfillset(&all);
        ::sigprocmask(SIG_SETMASK, &all, nullptr);
        for (;;) ::pause();
      },
      Clock::now() + 100ms));
  CHECK(!has_children());
}

TEST_CASE("ask_child: a deadline that is over asks in vain", "[plugin]") {
  CHECK(!ask_child([] { return "yes"; }, Clock::now() - 1s));
  CHECK(!has_children());
}

TEST_CASE("ask_child: exit handlers of the host are the host's", "[plugin]") {
  const std::string mark = std::filesystem::temp_directory_path() / "flex-ask-XXXXXX";
  static std::string file;
  file = mark;
  const int fd = ::mkstemp(file.data());
  REQUIRE(fd >= 0);
  ::close(fd);
  static const pid_t host = ::getpid();
  std::atexit([] {
    if (::getpid() != host) std::ofstream(file) << "ran in the child";
  });
  CHECK(!ask_child([]() -> std::string { std::exit(0); },
                   patient()));  // NOLINT(concurrency-mt-unsafe)
  CHECK(std::filesystem::file_size(file) == 0);
  std::filesystem::remove(file);
}

TEST_CASE("ask_child: a host that waits for nobody, and one that waits for all", "[plugin]") {
  const Handler ignored(SIGCHLD, SIG_IGN);
  CHECK(ask_child([] { return "yes"; }, patient()) == "yes");
  CHECK(!ask_child([]() -> std::string { ::_exit(1); }, patient()));
  const Handler reaper(SIGCHLD, [](int /*number*/) {
    const int before = errno;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = before;
  });
  CHECK(ask_child([] { return "yes"; }, patient()) == "yes");
  CHECK(!ask_child([]() -> std::string { ::_exit(1); }, patient()));
}

TEST_CASE("ask_child: signals interrupt it, and it goes on", "[plugin]") {
  static int seen = 0;
  const Handler alarm(SIGUSR1, [](int /*number*/) { ++seen; });
  const pthread_t self = ::pthread_self();
  std::jthread knocker([self](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto answer = ask_child(
      []() -> std::string {
        std::this_thread::sleep_for(200ms);
        return "yes";
      },
      patient());
  CHECK(answer == "yes");
  knocker.request_stop();
  knocker.join();
  CHECK(seen > 0);
}

TEST_CASE("ask_child: the host's signals are as before, the child's are its own", "[plugin]") {
  sigset_t blocked{};
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR2);
  sigset_t before{};
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const Handler handler(SIGTERM, [](int /*number*/) {});
  const auto answer = ask_child(
      []() -> std::string {
        sigset_t mask{};
        ::sigprocmask(SIG_SETMASK, nullptr, &mask);
        return ::signal(SIGTERM, SIG_DFL) == SIG_DFL && ::sigismember(&mask, SIGUSR2) == 0
                   ? "own"
                   : "host's";
      },
      patient());
  CHECK(answer == "own");
  sigset_t after{};
  ::pthread_sigmask(SIG_SETMASK, &before, &after);
  CHECK(::sigismember(&after, SIGUSR2) == 1);
  CHECK(::sigismember(&after, SIGTERM) == 0);
}

TEST_CASE("ask_child: other children of the host are not waited for", "[plugin]") {
  const pid_t other = ::fork();
  REQUIRE(other >= 0);
  if (other == 0) ::_exit(7);
  CHECK(ask_child([] { return "yes"; }, patient()) == "yes");
  int status = 0;
  CHECK(::waitpid(other, &status, 0) == other);
  CHECK(WEXITSTATUS(status) == 7);
}
