// SPDX-License-Identifier: GPL-2.0-or-later
// How a fuzz target says that something that must hold does not.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace flex::fuzz {

/// Ends the run, with the input saved by libFuzzer, unless `holds`.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fputs(("broken: " + std::string(what) + "\n").c_str(), stderr);
  std::abort();
}

}  // namespace flex::fuzz
