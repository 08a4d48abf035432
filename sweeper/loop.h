// SPDX-License-Identifier: GPL-2.0-or-later
// The daemon's life: rounds, signals, config, what it writes down.
#pragma once

#include "lib/config/config.h"
#include "lib/core/log.h"
#include "lib/core/state_file.h"
#include "lib/fleet/history.h"
#include "lib/fleet/queue.h"
#include "lib/gce/cloud.h"
#include "lib/provision/asked_nodes.h"
#include "lib/slurm/scheduler.h"
#include "sweeper/act.h"
#include "sweeper/decide.h"
#include "sweeper/historian.h"
#include "sweeper/http_server.h"
#include "sweeper/leaks.h"
#include "sweeper/memory.h"
#include "sweeper/metrics.h"
#include "sweeper/observe.h"
#include "sweeper/snapshot.h"
#include "sweeper/status.h"
#include "sweeper/user_names.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <sys/types.h>

namespace flex {

struct LoopOptions {
  bool is_dry_run = false;
  std::uint64_t rounds = 0;                        ///< 0: until SIGTERM
  std::optional<std::chrono::seconds> interval{};  ///< instead of the config's
  std::string state_dir{};
  std::optional<uid_t> slurm_user{};  ///< to whom files may belong that we believe
  /// Gets what was decided; with it a dry run prints nothing.
  std::function<void(const std::vector<Action>&)> show{};
};

/// What SIGHUP brings: a new config and a cloud for it, or why not.
struct Reloaded {
  Config config{};
  std::unique_ptr<Cloud> cloud{};
};

/// What a round needs, made by main.
struct LoopParts {
  Config config{};
  std::string cluster{};
  std::unique_ptr<Scheduler> scheduler{};
  std::unique_ptr<Cloud> cloud{};
  std::function<Result<Reloaded>()> reload{};
};

/// SIGTERM, SIGINT and SIGHUP wait until a Loop looks for them. To be called before any thread.
void hold_signals();

class Loop {
 public:
  Loop(LoopParts parts, LoopOptions options, const Log& log);

  /// Takes the lock, if this host is in charge. An error: another sweeper has it.
  [[nodiscard]] Result<Done> lock();

  /// Rounds until the options' number of them, SIGTERM or SIGINT. The exit code: of the last round
  /// where their number was given.
  int run();

  /// One round: observe, decide, act. False if it was incomplete or an action failed.
  bool round();

 private:
  enum class Wake { Time, Stop };

  void load_memory();
  void forget_drains(const std::vector<Action>& actions);
  void read_pauses();
  void save();
  void publish();
  void keep_serving();
  [[nodiscard]] bool is_to_serve() const;
  void serve(std::string status);
  void read_news();
  void recall_actions();
  void watch_calls();
  void publish_queue(QueueFile queue);
  void read_asked();
  Progress first_progress();
  ActReport carry_out(const std::vector<Action>& actions);
  void keep_jobs_waiting();
  Result<Done> look();
  void note_unseen();
  [[nodiscard]] Decision decide_freshly();
  void look_for_remains();
  [[nodiscard]] std::chrono::milliseconds longest_look() const;
  bool is_in_charge();
  bool take_charge();
  void forget_looks();
  bool fail_round(const Error& error);
  void report_round(const ActReport& acted, std::size_t actions);
  static void print(const std::vector<Action>& actions);
  void reload();
  void take_signals();
  Wake sleep(std::chrono::milliseconds time);
  /// From the beginning of one round to that of the next, if all is well.
  [[nodiscard]] std::chrono::seconds interval() const;
  /// The same, with what failed rounds add to it.
  [[nodiscard]] std::chrono::milliseconds pause() const;
  void notify_status() const;
  [[nodiscard]] bool should_stop();

  LoopParts parts_;
  LoopOptions options_;
  const Log& log_;
  Memory memory_{};
  Snapshot shot_{};
  Status status_{};
  UserNames user_names_{};
  HttpServer http_;
  Metrics metrics_{};
  LeakWatch leak_watch_{};
  HistoryMark read_to_{};                             ///< how far the history is counted
  std::size_t waiting_ = 0;                           ///< requests that wait for their turn
  std::uint64_t partial_rounds_ = 0;                  ///< in a row that did not see all nodesets
  std::optional<Seconds> shortest_resume_timeout_{};  ///< of the nodes that are brought up
  TimePoint last_good_{};  ///< the last round that was complete, or passive
  std::string saved_memory_{};
  Historian historian_;
  AskedFile asked_file_;
  std::optional<FileLock> lock_{};
  bool has_read_pauses_ = false;
  std::optional<std::set<std::string>> published_loose_{};  ///< none: not yet
  bool is_candidate_ = true;                                ///< this host may be in charge one day
  bool is_stopping_ = false;
  bool wants_reload_ = false;
};

/// How long to wait after `failures` failed rounds: twice as long each time, up to eight times the
/// interval.
[[nodiscard]] std::chrono::milliseconds round_pause(std::chrono::milliseconds interval,
                                                    std::uint64_t failures);

}  // namespace flex
