// SPDX-License-Identifier: GPL-2.0-or-later
// The part of Loop that keeps the memory over rounds and restarts.
#include "lib/core/state_file.h"
#include "sweeper/loop.h"
#include "sweeper/rules.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace flex {

namespace {

constexpr std::size_t kMostMemory = std::size_t{64} << 20U;

}  // namespace

void Loop::load_memory() {
  if (options_.state_dir.empty()) return;
  const auto text = read_small_file(options_.state_dir + "/memory.json", kMostMemory);
  if (!text) {
    if (text.error().kind != ErrorKind::NotFound)
      log_.warning("memory_lost",
                   {{"why", text.error().what}, {"then", "what is wrong is seen anew"}});
    return;
  }
  auto memory = parse_memory(*text);
  if (!memory) {
    log_.warning("memory_lost",
                 {{"why", memory.error().what}, {"then", "what is wrong is seen anew"}});
    return;
  }
  memory_ = std::move(*memory);
}

/// A drain that is about to go from a node's extra must not come back from the memory of the round
/// before, should this process die in the middle of the actions.
void Loop::forget_drains(const std::vector<Action>& actions) {
  if (!lock_) return;
  const std::string path = options_.state_dir + "/memory.json";
  std::optional<Memory> saved;
  for (const Action& action : actions) {
    const auto* const note = std::get_if<NoteDrain>(&action.what);
    if (note == nullptr || !note->reason.empty()) continue;
    if (!saved) {
      const auto text = read_small_file(path, kMostMemory);
      auto memory = text ? parse_memory(*text) : Result<Memory>{text.error()};
      if (!memory) return;  // there is nothing that could come back
      saved = std::move(*memory);
    }
    for (const NodeName& node : note->nodes) {
      forget_drain(*saved, node);
      if (!memory_.repairs.contains(node)) saved->repairs.erase(node);
    }
  }
  if (!saved) return;
  saved_memory_.clear();
  if (const auto done = write_atomically(path, to_text(*saved)); !done)
    log_.warning("memory_not_saved", {{"why", done.error().what}});
}

void Loop::save() {
  std::string text = to_text(memory_);
  if (lock_ && text != saved_memory_) {
    const auto done = write_atomically(options_.state_dir + "/memory.json", text);
    if (done)
      saved_memory_ = std::move(text);
    else
      log_.warning("memory_not_saved", {{"why", done.error().what}});
  }
  const RoundReport& round = status_.last_round;
  if (round.is_complete) return;
  metrics_.note_round(round.error.empty() ? "passive" : "incomplete", round.took);
  publish();
}

}  // namespace flex
