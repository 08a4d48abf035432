// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/ask.h"

#include "lib/core/descriptor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace flex::plugin {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The end of an answer: without it the child died on the way.
constexpr char kEnd = '\0';

/// Until this object ends no signal interrupts this thread, nor the beginning of a child of it.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }

  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// ---- in the child

/// The parent's handlers would act on the parent's things.
void forget_handlers() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t none{};
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void leave() {
  ::_exit(0);
}

/// What libslurm has to say is not for the job's output.
void silence(int answer_fd) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null >= 0 && fd != answer_fd) ::dup2(null, fd);
  }
}

/// Nothing of it may outlive the parent or act in its name.
void become_child(int answer_fd, Deadline deadline) {
  forget_handlers();
  silence(answer_fd);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  // The last one registered runs first: an exit() in the work skips the parent's.
  std::atexit([] { leave(); });
  const auto left = std::chrono::ceil<std::chrono::seconds>(deadline - Clock::now());
  ::alarm(static_cast<unsigned>(std::max<std::int64_t>(left.count(), 0)) + 1);
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

[[noreturn]] void answer(const std::function<std::string()>& work, int fd, Deadline deadline) {
  become_child(fd, deadline);
  try {
    write_all(fd, work() + kEnd);
  } catch (...) {  // no answer is the answer
  }
  leave();
}

// ---- in the parent

/// Waits until there is something to read; false at the deadline.
bool is_readable(int fd, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
    const int ready = ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::optional<std::string> read_answer(int fd, Deadline deadline) {
  std::string text;
  while (is_readable(fd, deadline)) {
    std::array<char, 512> part{};
    const ssize_t size = ::read(fd, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return std::nullopt;
    text.append(part.data(), static_cast<std::size_t>(size));
    if (text.size() > kMaxAnswer + 1) return std::nullopt;
    if (text.back() != kEnd) continue;
    text.pop_back();
    return text;
  }
  return std::nullopt;
}

/// Kills it if it is still there, and waits for it, by its number: the host has children of its
/// own, and may have waited for ours already. A process inside a dead disk's call ends when that
/// does; it is then left to the host.
void end_child(pid_t child) {
  constexpr milliseconds kPatience{200};
  const Deadline deadline = Clock::now() + kPatience;
  for (bool is_killed = false;; is_killed = true) {
    const pid_t found = ::waitpid(child, nullptr, WNOHANG);
    if (found < 0 && errno == EINTR) continue;
    if (found != 0 || Clock::now() > deadline) return;
    if (!is_killed) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(milliseconds{1});
  }
}

}  // namespace

std::optional<std::string> ask_child(const std::function<std::string()>& work, Deadline deadline) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor from_child(ends[0]);
  pid_t child = -1;
  {
    const Descriptor to_parent(ends[1]);
    const SignalsBlocked blocked;
    child = ::fork();
    if (child == 0) answer(work, ends[1], deadline);
  }
  if (child < 0) return std::nullopt;
  auto text = read_answer(from_child.get(), deadline);
  end_child(child);
  return text;
}

}  // namespace flex::plugin
