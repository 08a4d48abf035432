// SPDX-License-Identifier: GPL-2.0-or-later
// The front of the emulator without the network: an HTTP request in, an answer out. Thread-safe.
#pragma once

#include "emulator/api.h"
#include "emulator/faults.h"
#include "emulator/hooks.h"
#include "emulator/journal.h"
#include "emulator/world.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace flex::emulator {

struct HttpIn {
  std::string verb{};
  std::string path{};  ///< without the query
  Query query{};
  std::string authorization{};
  std::string metadata_flavor{};
  std::string content_type{};
  std::string origin{};  ///< set by browsers: a page must not drive the emulator
  std::string body{};
  std::function<bool()> is_gone{};  ///< true: the client has closed the connection
};

struct HttpOut {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";  ///< exactly this, or httplib does not compress it
  std::vector<std::pair<std::string, std::string>> headers{};
  bool is_dropped = false;  ///< close the connection, send nothing
};

class Front {
 public:
  explicit Front(Settings settings, std::string state_file = {});
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  [[nodiscard]] HttpOut handle(const HttpIn& in);
  /// Reads the state file, if there is one. An unreadable one is returned as a message.
  [[nodiscard]] std::optional<std::string> load_state();
  void save_state();
  /// Before the process ends at once: no more changes, state saved, queued hooks started.
  void finish();
  /// Sets what `change` names, as POST /_emulator/config does.
  [[nodiscard]] std::optional<std::string> configure(const Json& change);

 private:
  HttpOut answer(const HttpIn& in);
  HttpOut handle_api(const HttpIn& in);
  HttpOut serve(const HttpIn& in, JournalEntry& entry);
  /// What the fault makes of the call before it acts; nothing: it acts, with the fault in it.
  std::optional<HttpOut> strike(const HttpIn& in, const Fault& fault, Call& call);
  HttpOut act(const HttpIn& in, Call call, const FaultPlan& plan, double latency_ms);
  /// Nothing once the emulator is ending.
  std::optional<Reply> run(Call& call, const HttpIn& in);
  void hold(const HttpIn& in);
  void wait_for_operation(std::unique_lock<std::mutex>& lock, const Call& call);
  [[nodiscard]] std::optional<Reply> check_access(const HttpIn& in, const Route& route);
  [[nodiscard]] double latency_of(const std::string& method);
  HttpOut handle_batch(const HttpIn& in);

  HttpOut handle_control(const HttpIn& in);
  HttpOut post_control(const std::string& what, const HttpIn& in);
  Json state_dump();
  HttpOut wait_for_state(const HttpIn& in);

  HttpOut handle_metadata(const HttpIn& in);
  HttpOut handle_token(const HttpIn& in);
  Json issue_token();

  void work();
  void stop_changes();
  void save_loop();
  /// After any change: hooks out, waiters and the timer woken. Called with the lock held.
  void settle();

  std::mutex mutex_{};
  std::condition_variable timer_{};
  std::condition_variable changed_{};
  World world_;
  Faults faults_{};
  Journal journal_{};
  HookRunner hooks_{};
  std::unordered_map<std::string, std::string> replays_{};  ///< method, path, requestId: operation
  std::set<std::string> tokens_{};
  std::int64_t held_ = 0;  ///< calls that a fault holds now
  std::string state_file_;
  std::mutex save_mutex_{};
  std::uint64_t saved_ = 0;
  std::uint64_t seen_changes_ = 0;
  bool is_stopping_ = false;
  std::thread timer_thread_{};
  std::thread save_thread_{};
};

/// "a=b&c=d%20e" decoded.
[[nodiscard]] Query parse_query(const std::string& text);
[[nodiscard]] HttpOut json_out(int status, const Json& body);

// ---- state_file.cc ----
[[nodiscard]] Json save_world(const World& world);
/// False: not a state of ours.
[[nodiscard]] bool load_world(World& world, const Json& json);

}  // namespace flex::emulator
