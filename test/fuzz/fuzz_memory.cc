// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as the sweeper's memory: what is taken can be written and read again, the same.
#include "sweeper/memory.h"
#include "test/fuzz/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto memory = flex::parse_memory(text);
  if (!memory) return 0;
  const std::string written = flex::to_text(*memory);
  const auto again = flex::parse_memory(written);
  check(again.has_value(), "what was written can be read");
  check(flex::to_text(*again) == written, "and is the same");
  return 0;
}
