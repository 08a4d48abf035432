// SPDX-License-Identifier: GPL-2.0-or-later
// Starts the hook program with posix_spawn and collects its children.
#include "emulator/hooks.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flex::emulator {

namespace {

/// A child must not hold our sockets, nor inherit blocked or ignored signals.
bool spawn(const std::vector<std::string>& words) {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0;
}

}  // namespace

HookRunner::HookRunner() : thread_([this] { work(); }) {}

HookRunner::~HookRunner() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void HookRunner::run(const std::vector<std::string>& program, std::vector<HookCall> calls) {
  if (program.empty() || calls.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (HookCall& call : calls) queue_.emplace_back(program, std::move(call));
  }
  wake_.notify_all();
}

void HookRunner::drain() {
  for (int i = 0; i < 50; ++i) {
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty() && !is_starting_) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Json HookRunner::counters() const {
  const std::lock_guard lock(mutex_);
  return Json{{"up", up_},
              {"down", down_},
              {"failed", failed_},
              {"running", running_},
              {"queued", queue_.size()}};
}

void HookRunner::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_ready = [this] { return is_stopping_ || !queue_.empty(); };
    if (running_ > 0)
      wake_.wait_for(lock, std::chrono::milliseconds(50), is_ready);
    else
      wake_.wait(lock, is_ready);
    // What is queued is still started: a VM that is gone must not leave its process behind.
    while (!queue_.empty()) {
      const auto [program, call] = std::move(queue_.front());
      queue_.pop_front();
      is_starting_ = true;
      lock.unlock();
      start(program, call);
      lock.lock();
      is_starting_ = false;
    }
    reap();
    if (is_stopping_) return;
  }
}

void HookRunner::start(const std::vector<std::string>& program, const HookCall& call) {
  std::vector<std::string> words = program;
  words.insert(words.end(), {call.is_up ? "up" : "down", call.name, call.zone, call.group});
  const bool is_started = spawn(words);
  const std::lock_guard lock(mutex_);
  ++(call.is_up ? up_ : down_);
  if (is_started)
    ++running_;
  else
    ++failed_;
}

void HookRunner::reap() {
  int status = 0;
  while (running_ > 0 && waitpid(-1, &status, WNOHANG) > 0) {
    --running_;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) ++failed_;
  }
}

}  // namespace flex::emulator
