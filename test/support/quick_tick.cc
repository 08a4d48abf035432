// SPDX-License-Identifier: GPL-2.0-or-later
// Preloaded into slurmctld: runs job_time_limit() every second, the function that slurmctld itself
// runs every 30 s and that starts batch jobs whose nodes have come up. The code path is slurmctld's
// own, with slurmctld's own locks; it is only taken more often.
//
// It begins when the file $FLEX_TICK_FILE.<pid> exists: before that slurmctld may not have read its
// state. It pauses while the file is away.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

/// slurmctld_lock_t of src/slurmctld/locks.h, 22.05 to 26.05.
struct Locks {
  int conf;
  int job;
  int node;
  int part;
  int fed;
};

constexpr int kRead = 1;
constexpr int kWrite = 2;

template <class Function>
Function find(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
}

void tick(const std::string& file) {
  const auto lock = find<void (*)(Locks)>("lock_slurmctld");
  const auto unlock = find<void (*)(Locks)>("unlock_slurmctld");
  const auto work = find<void (*)()>("job_time_limit");
  if (lock == nullptr || unlock == nullptr || work == nullptr) {
    std::fputs("quick_tick: slurmctld does not export job_time_limit\n", stderr);
    return;
  }
  // As _slurmctld_background takes them for the same call.
  constexpr Locks kLocks{kRead, kWrite, kWrite, kRead, kRead};
  while (true) {
    std::this_thread::sleep_for(std::chrono::seconds{1});
    if (::access(file.c_str(), F_OK) != 0) continue;
    lock(kLocks);
    work();
    unlock(kLocks);
  }
}

[[gnu::constructor]] void begin() {
  const char* const file = std::getenv("FLEX_TICK_FILE");
  if (file == nullptr) return;
  std::string path = std::string{file} + "." + std::to_string(::getpid());
  // Not for the programs that slurmctld runs.
  ::unsetenv("LD_PRELOAD");
  ::unsetenv("FLEX_TICK_FILE");
  // slurmctld's own threads block signals, and one of them waits for SIGTERM. In a thread that does
  // not block it SIGTERM would end slurmctld at once, with what it has not saved yet.
  sigset_t all{};
  sigset_t before{};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread{[path = std::move(path)] { tick(path); }}.detach();
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
