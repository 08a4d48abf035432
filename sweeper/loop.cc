// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/loop.h"

#include "lib/core/program.h"
#include "lib/core/state_file.h"
#include "lib/fleet/cancelled.h"
#include "lib/fleet/loose.h"
#include "lib/fleet/queue.h"
#include "sweeper/decide.h"
#include "sweeper/kept_groups.h"
#include "sweeper/notify.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <set>
#include <utility>

namespace flex {

namespace {

using SteadyClock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

sigset_t our_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, number);
  return signals;
}

/// The next of our signals within `time`; 0: none came.
int wait_signal(Milliseconds time) {
  const sigset_t signals = our_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec limit{.tv_sec = seconds.count(),
                       .tv_nsec = std::chrono::nanoseconds(time - seconds).count()};
  const int got = ::sigtimedwait(&signals, nullptr, &limit);
  return got > 0 ? got : 0;
}

/// The first of the keys that say whose VMs these are and that differ. With another region, say,
/// all VMs would seem to be gone.
std::string changed_identity(const Config& old_config, const Config& new_config) {
  if (old_config.cluster != new_config.cluster) return "cluster";
  if (old_config.project != new_config.project) return "project";
  if (old_config.region != new_config.region) return "region";
  if (old_config.sweeper.state_dir != new_config.sweeper.state_dir) return "sweeper.state_dir";
  return {};
}

}  // namespace

Milliseconds round_pause(Milliseconds interval, std::uint64_t failures) {
  constexpr std::uint64_t kMostDoublings = 3;
  return interval * (std::uint64_t{1} << std::min(failures, kMostDoublings));
}

void hold_signals() {
  const sigset_t signals = our_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

Loop::Loop(LoopParts parts, LoopOptions options, const Log& log)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      log_(log),
      http_(log),
      historian_(options_.state_dir, log),
      asked_file_(options_.state_dir, "flex-sweeper") {
  shot_.cluster = parts_.cluster;
  status_.started = wall_clock();
  status_.is_blind = true;
  if (!options_.state_dir.empty()) read_to_ = end_of_history(options_.state_dir);
  watch_calls();
}

Result<Done> Loop::lock() {
  if (options_.is_dry_run || options_.state_dir.empty() || lock_) return Done{};
  auto taken = FileLock::acquire(options_.state_dir + "/sweeper.lock");
  if (!taken) return taken.error();
  lock_ = std::move(*taken);
  // Another controller's sweeper may have written since.
  load_memory();
  historian_.load();
  recall_actions();
  return Done{};
}

int Loop::run() {
  if (options_.is_dry_run) load_memory();
  log_.info("sweeper_started",
            {{"cluster", parts_.cluster},
             {"nodesets", parts_.config.nodesets.size()},
             {"state_dir", options_.state_dir},
             {"dry_run", options_.is_dry_run}});
  notify_systemd("READY=1");
  bool ok = true;
  while (!should_stop()) {
    const auto started = SteadyClock::now();
    keep_serving();
    ok = round();
    notify_systemd("WATCHDOG=1");
    notify_status();
    if (options_.rounds != 0 && status_.last_round.number >= options_.rounds) break;
    const auto took = std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - started);
    // Never busy: even a round longer than the interval is followed by a breath.
    const Milliseconds least = std::min(pause(), Milliseconds{200});
    if (sleep(std::max(pause() - took, least)) == Wake::Stop) break;
    if (wants_reload_) reload();
  }
  notify_systemd("STOPPING=1");
  status_.state = "stopped";
  publish();
  // Nobody looks after the queue any more.
  if (options_.rounds == 0) publish_queue({});
  log_.info("sweeper_stopped",
            {{"rounds", status_.last_round.number}, {"peak_kib", peak_memory_kib()}});
  return options_.rounds == 0 || ok ? kExitOk : kExitFailed;
}

bool Loop::round() {
  RoundReport& report = status_.last_round;
  const auto started = SteadyClock::now();
  const std::size_t calls = parts_.cloud->stats().calls;
  report = {.number = report.number + 1, .started = wall_clock()};
  const auto finish = [&] {
    report.calls = parts_.cloud->stats().calls - calls;
    report.took = std::chrono::duration_cast<Milliseconds>(SteadyClock::now() - started);
    save();
  };
  if (!is_in_charge()) {
    finish();
    return report.error.empty();
  }
  read_pauses();
  if (const auto seen = look(); !seen) {
    fail_round(seen.error());
    keep_jobs_waiting();
    finish();
    return false;
  }
  status_.failures_in_a_row = 0;
  status_.state = "active";
  status_.why.clear();
  report.is_complete = true;
  status_.is_blind = false;
  note_unseen();
  if (lock_) historian_.look(parts_.config, shot_);
  metrics_.note_look(parts_.config, shot_);
  status_.leaks = leak_watch_.look(parts_.config, shot_);
  if (should_stop()) {
    finish();
    return true;
  }
  read_asked();
  const Decision decision = decide_freshly();
  report.postponed = decision.postponed;
  const ActReport acted = carry_out(decision.actions);
  if (!shot_.unseen.empty()) keep_jobs_waiting();
  look_for_remains();
  waiting_ = decision.waiting + acted.waiting;
  publish_queue({.waiting = waiting_, .nodesets = decision.waiting_nodesets});
  status_.last_complete = shot_.now;
  last_good_ = wall_clock();
  finish();
  report_round(acted, decision.actions.size());
  metrics_.note_round(acted.failed == 0 ? "complete" : "failed", report.took);
  publish();
  return acted.failed == 0 && shot_.unseen.empty();
}

ActReport Loop::carry_out(const std::vector<Action>& actions) {
  if (options_.show) options_.show(actions);
  if (options_.is_dry_run) {
    if (!options_.show) print(actions);
    return {};
  }
  forget_drains(actions);
  parts_.cloud->set_deadline(SteadyClock::now() + parts_.config.api.run_timeout);
  Actor actor{.config = parts_.config,
              .shot = shot_,
              .cloud = *parts_.cloud,
              .scheduler = *parts_.scheduler,
              .memory = memory_,
              .log = log_,
              .serial_dir = options_.state_dir.empty() ? "" : options_.state_dir + "/serial",
              .should_stop = [this] { return should_stop(); },
              .asked = {},
              .served = {},
              .asked_file = options_.state_dir.empty() ? nullptr : &asked_file_,
              .tell =
                  [this](std::vector<Event> events) {
                    // Not from the history: a disk that is full is no reason to count less.
                    for (const Event& event : events) metrics_.note_action(event);
                    if (lock_) historian_.tell(std::move(events));
                  }};
  const ActReport acted = act(actor, actions);
  // Ended before it began: none.
  if (acted.outcomes.size() == actions.size()) {
    for (std::size_t i = 0; i < actions.size(); ++i)
      status_.remember(shot_.now, actions[i], acted.outcomes[i]);
  }
  const std::set<MigName> written = written_groups(actions);
  for (SweptGroup& group : shot_.groups) {
    if (written.contains(group.group.name)) group.readings_due = 2;
  }
  // Something was not as it looked: the next look is a full one.
  if (acted.again > 0) shot_.nodes.as_of = {};
  return acted;
}

void Loop::report_round(const ActReport& acted, std::size_t actions) {
  RoundReport& report = status_.last_round;
  report.done = acted.done;
  report.failed = acted.failed;
  report.again = acted.again;
  const std::initializer_list<Field> fields = {{"round", report.number},
                                               {"actions", actions},
                                               {"done", acted.done},
                                               {"failed", acted.failed},
                                               {"again", acted.again},
                                               {"postponed", report.postponed},
                                               {"groups", shot_.groups.size()},
                                               {"calls", report.calls},
                                               {"ms", report.took.count()}};
  if (actions > 0)
    log_.info("round", fields);
  else
    log_.debug("round", fields);
}

bool Loop::is_in_charge() {
  const auto controller = parts_.scheduler->find_controller();
  if (!controller) {
    fail_round(controller.error().in("slurmctld"));
    return false;
  }
  if (controller->is_here) return take_charge();
  if (status_.state != "passive")
    log_.info(
        "passive",
        {{"why", fmt::format("slurmctld is in charge on {}, not on this host", controller->host)},
         {"then",
          controller->is_candidate
              ? "nothing is done here until that changes"
              : "nothing is ever done here: this host is none of slurm.conf's SlurmctldHosts, and "
                "flex-sweeper may be disabled (systemctl disable --now flex-sweeper)"}});
  is_candidate_ = controller->is_candidate;
  if (status_.state != "passive") forget_looks();
  status_.state = "passive";
  status_.why = fmt::format("slurmctld is in charge on {}", controller->host);
  status_.failures_in_a_row = 0;
  last_good_ = wall_clock();
  // The controllers share the state directory: the other one's sweeper needs the lock.
  lock_.reset();
  return false;
}

/// Of what was seen here before the other host took over, nothing is told any more.
void Loop::forget_looks() {
  std::string cluster = std::move(shot_.cluster);
  shot_ = {};
  shot_.cluster = std::move(cluster);
  memory_ = {};
  saved_memory_.clear();
  status_.is_blind = true;
  status_.leaks.clear();
  leak_watch_ = {};
  waiting_ = 0;
  metrics_.forget_looks();
}

bool Loop::take_charge() {
  const auto locked = lock();
  if (!locked) fail_round(locked.error());
  return locked.has_value();
}

/// Nothing is decided. The first of several is a warning, the rest is for those who look closely.
bool Loop::fail_round(const Error& error) {
  RoundReport& report = status_.last_round;
  report.error = error.what;
  ++status_.failures_in_a_row;
  status_.state = "waiting";
  status_.why = error.what;
  const std::initializer_list<Field> fields = {
      {"round", report.number},
      {"kind", to_string(error.kind)},
      {"in_a_row", status_.failures_in_a_row},
      {"why", error.what},
      {"then", fmt::format("nothing is decided; next look in {} s", pause().count() / 1000)}};
  const bool is_news = (status_.failures_in_a_row & (status_.failures_in_a_row - 1)) == 0;
  if (is_news)
    log_.warning("incomplete_view", fields);
  else
    log_.debug("incomplete_view", fields);
  return false;
}

void Loop::print(const std::vector<Action>& actions) {
  const Log out{[](LogLevel, std::string_view line) { std::cout << "would: " << line << '\n'; },
                LogLevel::Info};
  for (const Action& action : actions) log_action(out, action);
  std::cout << std::flush;
}

// ---- what is kept ----

/// What an admin wants now; what cannot be read is as it was.
void Loop::read_pauses() {
  if (options_.state_dir.empty()) return;
  if (auto cancelled = load_cancelled(options_.state_dir))
    shot_.cancelled = std::move(*cancelled);
  else
    log_.warning("cancelled_not_read", {{"why", cancelled.error().what}});
  auto pauses = load_pauses(options_.state_dir);
  if (pauses) {
    shot_.pauses = std::move(*pauses);
    shot_.are_pauses_known = has_read_pauses_ = true;
    return;
  }
  if (!has_read_pauses_) shot_.are_pauses_known = false;
  log_.warning("pauses_not_read",
               {{"why", pauses.error().what}, {"then", "what was paused stays paused"}});
}

/// What others ask for at this time. What cannot be read is noticed before anything is asked for.
void Loop::read_asked() {
  shot_.asked.clear();
  if (options_.state_dir.empty()) return;
  const auto asked = lock_ ? asked_file_.load_and_tidy(wall_clock()) : asked_file_.load();
  if (asked) shot_.asked = find_unseen(*asked, shot_.now, wall_clock());
}

void Loop::publish() {
  status_.interval = interval();
  user_names_.fill(shot_.jobs.items);
  std::string text = to_json_text(status_, parts_.config, shot_, memory_);
  serve(text);
  if (!lock_) return;
  auto done = write_atomically(options_.state_dir + "/status.json", text);
  if (done && status_.last_complete != TimePoint{}) {
    done = write_atomically(options_.state_dir + "/heartbeat",
                            fmt::format("{}\n", status_.last_complete.time_since_epoch().count()));
  }
  if (!done) log_.warning("status_not_written", {{"why", done.error().what}});
}

void Loop::publish_queue(QueueFile queue) {
  if (!lock_) return;
  queue.written = wall_clock();
  const auto done = write_queue_file(options_.state_dir, queue);
  if (!done) log_.warning("queue_not_written", {{"why", done.error().what}});
  if (memory_.loose == published_loose_) return;
  const auto told = write_loose_file(options_.state_dir, memory_.loose);
  if (told)
    published_loose_ = memory_.loose;
  else
    log_.warning("loose_not_written", {{"why", told.error().what}});
}

// ---- signals and time ----

void Loop::reload() {
  wants_reload_ = false;
  notify_systemd("RELOADING=1");
  auto reloaded = parts_.reload();
  notify_systemd("READY=1");
  if (!reloaded) {
    log_.error("reload_failed",
               {{"why", reloaded.error().what}, {"then", "going on with the old config"}});
    return;
  }
  if (const std::string key = changed_identity(parts_.config, reloaded->config); !key.empty()) {
    log_.error("reload_failed",
               {{"why", fmt::format("'{}' has changed, which needs a restart", key)},
                {"then", "going on with the old config"}});
    return;
  }
  parts_.config = std::move(reloaded->config);
  parts_.cloud = std::move(reloaded->cloud);
  watch_calls();
  log_.info("reloaded", {{"nodesets", parts_.config.nodesets.size()}});
}

void Loop::take_signals() {
  while (const int number = wait_signal(Milliseconds{0})) {
    if (number == SIGHUP)
      wants_reload_ = true;
    else
      is_stopping_ = true;
  }
}

bool Loop::should_stop() {
  // Asked between actions, so a long round is no reason to be taken for dead.
  notify_systemd("WATCHDOG=1");
  take_signals();
  return is_stopping_;
}

std::chrono::seconds Loop::interval() const {
  const auto interval = options_.interval.value_or(parts_.config.sweeper.interval);
  // A thousand VMs need not ask all the time; slurm.conf may change.
  constexpr std::chrono::seconds kElsewhere = std::chrono::minutes{5};
  return is_candidate_ ? interval : std::max(interval, kElsewhere);
}

Milliseconds Loop::pause() const {
  const Milliseconds pause = round_pause(interval(), status_.failures_in_a_row);
  // What keeps jobs waiting must come in time.
  const auto least = std::min(pause, std::chrono::duration_cast<Milliseconds>(interval()));
  return std::max(least, std::min(pause, longest_look()));
}

Loop::Wake Loop::sleep(Milliseconds time) {
  const auto end = SteadyClock::now() + time;
  const auto watchdog = watchdog_interval();
  while (true) {
    if (should_stop()) return Wake::Stop;
    const auto left = std::chrono::duration_cast<Milliseconds>(end - SteadyClock::now());
    if (wants_reload_ || left <= Milliseconds{0}) return Wake::Time;
    const auto slice =
        watchdog ? std::min(left, std::chrono::duration_cast<Milliseconds>(*watchdog)) : left;
    const int number = wait_signal(std::max(slice, Milliseconds{1}));
    if (number == SIGHUP) wants_reload_ = true;
    if (number == SIGTERM || number == SIGINT) is_stopping_ = true;
    if (watchdog) notify_systemd("WATCHDOG=1");
  }
}

void Loop::notify_status() const {
  const RoundReport& report = status_.last_round;
  notify_systemd(status_.why.empty() ? fmt::format("STATUS=round {}: {} groups, {} done, {} failed",
                                                   report.number,
                                                   shot_.groups.size(),
                                                   report.done,
                                                   report.failed)
                                     : fmt::format("STATUS={}: {}", status_.state, status_.why));
}

}  // namespace flex
