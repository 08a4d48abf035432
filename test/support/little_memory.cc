// SPDX-License-Identifier: GPL-2.0-or-later
// Preloaded into slurmd: the machine seems to have 16 MiB, less than slurm.conf says, and slurmctld
// refuses it.
#include <dlfcn.h>
#include <unistd.h>

#pragma GCC visibility push(default)

extern "C" long sysconf(int name) noexcept {  // NOLINT(google-runtime-int): as libc declares it
  constexpr long kLittle = 16L << 20;         // NOLINT(google-runtime-int)
  using Function = long (*)(int);             // NOLINT(google-runtime-int)
  static const auto kReal = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "sysconf"));
  if (name == _SC_PHYS_PAGES) return kLittle / kReal(_SC_PAGESIZE);
  return kReal(name);
}
