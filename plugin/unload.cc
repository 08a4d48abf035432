// SPDX-License-Identifier: GPL-2.0-or-later
// What the module leaves behind when a program unloads it: nothing. Slurm's programs load and
// unload plugins more than once.

namespace __gnu_cxx {  // NOLINT(bugprone-reserved-identifier): libstdc++'s own
/// Frees the memory that libstdc++ keeps for exceptions when there is none.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
[[gnu::weak]] void __freeres();
}  // namespace __gnu_cxx

namespace {

/// The libstdc++ inside the module goes with it, and nobody else uses it.
[[gnu::destructor]] void free_reserve() {
  if (&__gnu_cxx::__freeres != nullptr) __gnu_cxx::__freeres();
}

}  // namespace
