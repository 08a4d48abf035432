// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/historian.h"

#include "lib/core/state_file.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace flex {

namespace {

constexpr std::size_t kMostChronicle = std::size_t{64} << 20U;
/// Of one round; a job's comments alone may be thousands.
constexpr std::size_t kMostActions = 500;
constexpr std::string_view kProgram = "flex-sweeper";

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

bool is_same(const Event& left, const Event& right) {
  return left.what == right.what && left.job == right.job && left.request == right.request &&
         left.group == right.group && left.nodes == right.nodes;
}

}  // namespace

void Historian::load() {
  known_ = {};
  is_first_ = true;
  const auto text = read_small_file(state_dir_ + "/chronicle.json", kMostChronicle);
  auto known = text ? parse_chronicle(*text) : Result<Chronicle>{text.error()};
  if (known)
    known_ = std::move(*known);
  else
    log_.debug("chronicle_begun", {{"why", known.error().what}});
}

void Historian::look(const Config& config, const Snapshot& shot) {
  const bool was_known = known_.has_begun;
  std::vector<Event> told;
  if (!was_known) known_.mark = end_of_history(state_dir_);
  read_on(is_first_ ? &told : nullptr);
  is_first_ = false;
  std::vector<Event> events = chronicle(config, shot, known_);
  // Written, but the sweeper died before it had kept that.
  std::erase_if(events, [&](const Event& event) {
    return std::any_of(
        told.begin(), told.end(), [&](const Event& before) { return is_same(before, event); });
  });
  keep_in_history(state_dir_, events, log_);
  if (!events.empty()) read_on(nullptr);
  save();
}

void Historian::tell(std::vector<Event> events) {
  for (Event& event : events) {
    event.when = wall_clock();
    event.program = kProgram;
    learn(known_, event);
  }
  const std::size_t all = events.size();
  if (all > kMostActions) {
    events.resize(kMostActions);
    Event rest;
    rest.when = wall_clock();
    rest.program = kProgram;
    rest.what = "and_more";
    rest.n = all - kMostActions;
    events.push_back(std::move(rest));
  }
  keep_in_history(state_dir_, events, log_);
}

/// What other programs did meanwhile; and what this one had told already, if anybody asks.
void Historian::read_on(std::vector<Event>* own) {
  (void)read_history(state_dir_, known_.mark, [&](Event event) {
    if (event.program != kProgram)
      learn(known_, event);
    else if (own != nullptr)
      own->push_back(std::move(event));
  });
}

void Historian::save() {
  if (!known_.is_changed) return;
  const auto done = write_atomically(state_dir_ + "/chronicle.json", to_text(known_));
  if (done)
    known_.is_changed = false;
  else
    log_.warning("chronicle_not_saved", {{"why", done.error().what}});
}

}  // namespace flex
