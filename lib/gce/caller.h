// SPDX-License-Identifier: GPL-2.0-or-later
// One call of the Compute API to its final answer: project, token, requestId, retries, deadline.
#pragma once

#include "lib/core/result.h"
#include "lib/gce/backoff.h"
#include "lib/gce/cloud.h"
#include "lib/gce/http.h"
#include "lib/gce/token.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

struct Call {
  std::string_view name = "other";  ///< as the API's reference calls it, for the observer
  std::string method = "GET";
  std::string path{};   ///< below the project, with its query
  std::string doing{};  ///< for errors: "listing groups"
  /// Gets the project's name; none: no body.
  std::function<std::string(const std::string& project)> body{};
  /// A requestId is added, the same for every try: without one a repetition might do it twice.
  bool is_write = false;
  std::chrono::milliseconds extra_time{0};  ///< beyond the ordinary time of a call
};

struct CallerSettings {
  std::string endpoint{};
  std::string project{};
  std::chrono::milliseconds call_timeout{30000};
};

class Caller {
 public:
  /// Everything given must outlive this.
  Caller(CallerSettings settings, HttpClient& http, Backoff& backoff, Tokens& tokens);

  /// Answers with the body of the 2xx reply, or with the error in its class; never from inside.
  void call(Call call, Then<std::string> then);

  /// Calls `what` during run(), as soon as may be.
  void later(std::function<void()> what);
  void after(std::chrono::milliseconds delay, std::function<void()> what);
  [[nodiscard]] std::chrono::steady_clock::time_point now() const;

  [[nodiscard]] CloudStats stats() const { return stats_; }

  void set_observer(CallObserver observer) { observer_ = std::move(observer); }

 private:
  struct Pending;
  // Shared, because a std::function must be copyable; there is one owner at a time.
  using PendingPtr = std::shared_ptr<Pending>;

  void need_project(std::function<void(const Result<Done>&)> then);
  void attempt(const PendingPtr& pending);
  void send(const PendingPtr& pending, const std::string& token);
  void on_reply(const PendingPtr& pending, Result<HttpResponse> reply);
  void fail(const PendingPtr& pending, Error error);
  void tell(const Pending& pending, const Result<HttpResponse>& reply) const;

  CallerSettings settings_;
  HttpClient* http_;
  Backoff* backoff_;
  Tokens* tokens_;
  CloudStats stats_{};
  CallObserver observer_{};
  std::vector<std::function<void(const Result<Done>&)>> waiting_{};
};

}  // namespace flex
