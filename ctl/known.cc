// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/known.h"

#include "lib/core/state_file.h"

#include <fmt/format.h>

#include <utility>

namespace flex {

Known read_known(const std::string& state_dir) {
  constexpr std::size_t kMost = std::size_t{64} << 20U;
  Known known;
  const auto text = read_small_file(state_dir + "/memory.json", kMost);
  auto memory = text ? parse_memory(*text) : Result<Memory>{text.error()};
  if (memory)
    known.memory = std::move(*memory);
  else
    known.problems.push_back(
        fmt::format("What the sweeper remembers cannot be read: {}", memory.error().what));
  auto pauses = load_pauses(state_dir);
  if (!pauses) {
    known.problems.push_back(fmt::format("What is paused cannot be read: {}", pauses.error().what));
    return known;
  }
  known.pauses = std::move(*pauses);
  take_pauses(known.pauses, known.memory);
  return known;
}

void take_pauses(const Pauses& pauses, Memory& memory) {
  std::erase_if(memory.stopped, [&](const auto& item) {
    return item.second.is_paused && !pauses.contains(item.first);
  });
  for (const auto& [nodeset, pause] : pauses) {
    Stopped& stopped = memory.stopped[nodeset];
    stopped.why = pause.why();
    stopped.is_paused = true;
  }
}

std::string stopped_text(const Memory& memory, const std::string& nodeset) {
  const auto found = memory.stopped.find(nodeset);
  if (found == memory.stopped.end()) return {};
  const Stopped& stopped = found->second;
  return stopped.is_paused ? "is " + stopped.why : "is stopped: " + stopped.why;
}

}  // namespace flex
