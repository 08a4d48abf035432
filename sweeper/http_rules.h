// SPDX-License-Identifier: GPL-2.0-or-later
// Who may read what from the sweeper's HTTP server, and what it says of its health (pure).
#pragma once

#include "lib/core/domain.h"

#include <string>
#include <string_view>

namespace flex {

/// What a client says that matters here.
struct Visit {
  std::string method{};
  std::string path{};
  std::string host{};           ///< the Host header
  std::string authorization{};  ///< the Authorization header
};

struct Verdict {
  int status = 200;
  std::string why{};  ///< for people; empty: come in
};

/// With a token, everything that tells of jobs needs it. Without one only this machine can reach
/// us, and the Host header must be a name of it: else a web page could bind its own name to
/// 127.0.0.1 and read along with its visitor's browser.
[[nodiscard]] Verdict judge(const Visit& visit, std::string_view token);

/// "Bearer TOKEN" with exactly this token; takes as long for a wrong one as for the right one.
[[nodiscard]] bool is_bearer(std::string_view authorization, std::string_view token);

/// A token file's text without the end of its line; empty if it is no good: shorter than 16
/// characters, or with any that a header cannot carry.
[[nodiscard]] std::string_view token_in(std::string_view text);

/// What /healthz goes by.
struct Health {
  std::string state = "starting";  ///< as in status.json
  std::string why{};
  TimePoint started{};
  TimePoint last_complete{};  ///< of the last complete round, or of the last passive one
  Seconds interval{};         ///< between rounds, as they are made on this host
};

/// How old the last complete round may be.
[[nodiscard]] Seconds most_silence(Seconds interval);

/// 200 with "ok" and a word, or 503 with the reason.
[[nodiscard]] Verdict health_of(const Health& health, TimePoint now);

}  // namespace flex
