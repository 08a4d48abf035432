// SPDX-License-Identifier: GPL-2.0-or-later
// The emulator's own threads: one does what is due, one saves the state.
#include "emulator/front.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace flex::emulator {

Front::Front(Settings settings, std::string state_file)
    : world_(std::move(settings), steady_wall), state_file_(std::move(state_file)) {
  timer_thread_ = std::thread([this] { work(); });
  if (!state_file_.empty()) save_thread_ = std::thread([this] { save_loop(); });
}

Front::~Front() {
  stop_changes();
  timer_thread_.join();
  if (save_thread_.joinable()) save_thread_.join();
  save_state();
}

void Front::settle() {
  if (!world_.hooks.empty()) {
    hooks_.run(world_.settings.hook, std::move(world_.hooks));
    world_.hooks.clear();
  }
  if (world_.changes == seen_changes_) return;
  seen_changes_ = world_.changes;
  timer_.notify_all();
  changed_.notify_all();
}

void Front::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    world_.tick();
    settle();
    const auto due = world_.next_due();
    const double wait = due ? *due - steady_wall() : 60.0;
    if (wait > 0) timer_.wait_for(lock, std::chrono::duration<double>(std::min(wait, 60.0)));
  }
}

void Front::save_loop() {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    changed_.wait_for(lock, std::chrono::seconds(1));
    if (world_.changes == saved_) continue;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // more changes, one write
    save_state();
    lock.lock();
  }
}

void Front::stop_changes() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  timer_.notify_all();
  changed_.notify_all();
}

void Front::finish() {
  stop_changes();
  save_state();
  hooks_.drain();
}

void Front::save_state() {
  if (state_file_.empty()) return;
  const std::lock_guard saving(save_mutex_);
  Json json;
  {
    const std::lock_guard lock(mutex_);
    if (world_.changes == saved_ && std::filesystem::exists(state_file_)) return;
    json = save_world(world_);
    saved_ = world_.changes;
  }
  const std::string temporary = state_file_ + ".new";
  {
    std::ofstream file(temporary, std::ios::trunc);
    file << json.dump() << '\n';
    file.flush();
    if (!file) {
      fmt::print(stderr, "flex-gce-emulator: cannot write {}\n", temporary);
      return;
    }
  }
  if (std::rename(temporary.c_str(), state_file_.c_str()) != 0)
    fmt::print(stderr, "flex-gce-emulator: cannot write {}\n", state_file_);
}

std::optional<std::string> Front::load_state() {
  if (state_file_.empty() || !std::filesystem::exists(state_file_)) return std::nullopt;
  std::ifstream file(state_file_);
  std::ostringstream text;
  text << file.rdbuf();
  const Json json = Json::parse(text.str(), nullptr, false);
  const std::lock_guard lock(mutex_);
  if (json.is_discarded() || !load_world(world_, json))
    return state_file_ + " is not a state of this emulator";
  ++world_.changes;
  timer_.notify_all();
  return std::nullopt;
}

std::optional<std::string> Front::configure(const Json& change) {
  const std::lock_guard lock(mutex_);
  std::optional<double> factor;
  if (auto bad = apply_settings(world_.settings, change, factor)) return bad;
  if (factor) {
    world_.clock.set_factor(*factor);
    world_.history.time_changed(world_.clock);
  }
  world_.capacity_changed();
  world_.tick();
  ++world_.changes;
  settle();
  return std::nullopt;
}

}  // namespace flex::emulator
