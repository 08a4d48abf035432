// SPDX-License-Identifier: GPL-2.0-or-later
// What parse_wish makes of texts, to compare with etc/job_submit.lua.example; wish_tool.lua prints
// the same for that:
//   wish-tool TEXT…
// For each text a line such as "run=14400 wait=- ontimeout=hold", then a line for each problem.
#include "lib/core/job_wish.h"

#include <fmt/format.h>

#include <span>
#include <string>

using namespace flex;

namespace {

std::string shown(const std::optional<Seconds>& time) {
  return time ? fmt::format("{}", time->count()) : "-";
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* text : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    const JobWish wish = parse_wish(text);
    fmt::print("run={} wait={} ontimeout={}\n",
               shown(wish.run),
               shown(wish.wait),
               wish.on_timeout ? to_string(*wish.on_timeout) : "-");
    for (const auto& problem : wish.problems) fmt::print("! {}\n", problem);
  }
  return 0;
}
