// SPDX-License-Identifier: GPL-2.0-or-later
// An HttpClient without a network: a function answers, time is virtual, every request is kept.
#pragma once

#include "lib/gce/http.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace flex {

class FakeHttp final : public HttpClient {
 public:
  using Handler = std::function<Result<HttpResponse>(const HttpRequest&)>;

  /// What a test keeps in hand after the client has taken the FakeHttp.
  struct Script {
    Handler handler{};
    std::vector<HttpRequest> log{};
    /// Virtual time that an exchange takes, the same for all.
    std::chrono::milliseconds latency{1};
    std::chrono::steady_clock::time_point now{std::chrono::hours{1}};
    std::size_t most_in_flight = 0;
  };

  explicit FakeHttp(Script& script) : script_(&script) {}

  void send(HttpRequest request, Answer answer) override;
  void after(std::chrono::milliseconds delay, std::function<void()> what) override;
  void run(std::chrono::steady_clock::time_point deadline) override;

  [[nodiscard]] std::chrono::steady_clock::time_point now() const override { return script_->now; }

 private:
  struct Exchange {
    std::chrono::steady_clock::time_point ends;
    HttpRequest request;
    Answer answer;
  };

  void answer_first();
  void fire_first();
  void expire();

  Script* script_;
  bool is_expired_ = false;
  std::deque<Exchange> in_flight_{};
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> timers_{};
};

/// A 200 with a JSON body.
[[nodiscard]] HttpResponse ok(std::string body);
/// Google's error reply.
[[nodiscard]] HttpResponse refusal(int status,
                                   const std::string& reason,
                                   const std::string& message = "no");
/// The metadata server's token reply.
[[nodiscard]] HttpResponse token_reply(const std::string& token, int lifetime = 3600);

[[nodiscard]] bool is_metadata(const HttpRequest& request);

/// The value of a query parameter, percent-decoded; empty if it is not there.
[[nodiscard]] std::string query_value(const std::string& url, const std::string& key);
[[nodiscard]] std::string percent_decode(const std::string& text);

}  // namespace flex
