// SPDX-License-Identifier: GPL-2.0-or-later
// What the loop shows to the outside while it runs: the HTTP server, the metrics, its progress.
#include "sweeper/loop.h"
#include "sweeper/notify.h"

#include <chrono>
#include <utility>

namespace flex {

namespace {

using Steady = std::chrono::steady_clock;

}  // namespace

/// The first look at a big cluster takes a while: it says how far it is, once a second at most. The
/// later ones are quick.
Progress Loop::first_progress() {
  if (status_.last_complete != TimePoint{}) return {};
  return [this, last = Steady::time_point{}](const std::string& doing) mutable {
    constexpr auto kPause = std::chrono::seconds{1};
    const auto now = Steady::now();
    if (now - last < kPause) return;
    last = now;
    status_.why = "reading " + doing;
    notify_systemd("WATCHDOG=1\nSTATUS=first look: reading " + doing);
    log_.info("first_look", {{"reading", doing}});
  };
}

/// A sweeper that is only to run a few rounds, or to do nothing, leaves the port to the daemon.
bool Loop::is_to_serve() const {
  return options_.rounds == 0 && !options_.is_dry_run;
}

void Loop::keep_serving() {
  if (!is_to_serve()) return;
  http_.keep_up(parts_.config.sweeper, options_.slurm_user);
  const std::string before = std::exchange(status_.http, http_.address());
  // Who asks before the round is over is told where this is served.
  if (status_.last_round.number == 0 || status_.http != before) publish();
}

/// What was done before this sweeper was started: a restart is when people look.
void Loop::recall_actions() {
  if (!is_to_serve() || !status_.actions.empty()) return;
  HistoryMark all;
  (void)read_history(
      options_.state_dir, all, [this](const Event& event) { status_.recall(event); });
}

/// What other programs have written since the last time. Where another host is in charge its
/// sweeper counts them.
void Loop::read_news() {
  if (options_.state_dir.empty()) return;
  if (!lock_)
    read_to_ = end_of_history(options_.state_dir);
  else
    (void)read_history(
        options_.state_dir, read_to_, [this](const Event& event) { metrics_.note_event(event); });
}

void Loop::watch_calls() {
  parts_.cloud->set_call_observer([this](const CallNote& note) { metrics_.note_call(note); });
}

void Loop::serve(std::string status) {
  // Also for a server that is not there yet.
  if (!is_to_serve()) return;
  read_news();
  http_.publish({.status = std::move(status),
                 .metrics = metrics_.text({.config = parts_.config,
                                           .shot = shot_,
                                           .memory = memory_,
                                           .status = status_,
                                           .waiting = waiting_}),
                 .health = {.state = status_.state,
                            .why = status_.why,
                            .started = status_.started,
                            .last_complete = last_good_,
                            .interval = interval()}});
}

}  // namespace flex
