// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as a line of the history: what is taken can be written and read again, the same; and a
// node list in it stays one.
#include "lib/fleet/history.h"
#include "lib/slurm/hostlist.h"
#include "test/fuzz/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto event = flex::parse_event(text);
  if (!event) return 0;
  const std::string written = flex::to_line(*event);
  check(written.find('\n') == std::string::npos, "a line is one line");
  const auto again = flex::parse_event(written);
  check(again.has_value(), "what was written can be read");
  check(flex::to_line(*again) == written, "and is the same");
  if (flex::expand_hostlist(event->nodes))
    check(flex::expand_hostlist(again->nodes).has_value(), "a list that is cut can be read");
  return 0;
}
