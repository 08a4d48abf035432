// SPDX-License-Identifier: GPL-2.0-or-later
// Access tokens: fetched when needed, kept in memory until shortly before they expire.
#pragma once

#include "lib/core/result.h"
#include "lib/gce/backoff.h"
#include "lib/gce/credentials.h"
#include "lib/gce/http.h"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

class Tokens {
 public:
  using Then = std::function<void(const Result<std::string>&)>;

  /// `http` and `backoff` must outlive this.
  Tokens(HttpClient& http, Backoff& backoff, Credentials credentials);

  /// At once if there is one that is good for another minute, else as soon as it is fetched; any
  /// number of callers share one fetch. Errors say what to do, and never what the token is.
  void get(Then then);

  /// The API refused this token: the next get() fetches another.
  void forget(std::string_view token);

  /// The project of the key file, else of the VM we are on.
  void fetch_project(const Then& then);

 private:
  void fetch(int tries);
  [[nodiscard]] Result<HttpRequest> make_request() const;
  void on_reply(int tries, Result<HttpResponse> reply);
  void settle(const Result<std::string>& token);
  void fetch_project(int tries, const Then& then);
  [[nodiscard]] Error explain(Error error) const;

  HttpClient* http_;
  Backoff* backoff_;
  Credentials credentials_;
  Secret token_{};
  std::chrono::steady_clock::time_point good_until_{};
  std::vector<Then> waiting_{};
};

/// A token endpoint's reply.
struct TokenReply {
  Secret token{};
  std::chrono::seconds lifetime{};
};

[[nodiscard]] Result<TokenReply> parse_token_reply(std::string_view text);

}  // namespace flex
