// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/http_rules.h"

#include "lib/config/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace flex {

namespace {

constexpr std::string_view kScheme = "bearer ";

/// The page's text is in every copy of this program, and a browser cannot send a token with a
/// click. /healthz tells strangers yes or no.
bool is_open(std::string_view path) {
  return path == "/" || path == "/healthz";
}

}  // namespace

bool is_bearer(std::string_view authorization, std::string_view token) {
  if (token.empty() || authorization.size() < kScheme.size()) return false;
  std::string scheme(authorization.substr(0, kScheme.size()));
  for (char& c : scheme) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const std::string_view given = authorization.substr(kScheme.size());
  if (scheme != kScheme) return false;
  unsigned difference = given.size() == token.size() ? 0U : 1U;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = token[i % token.size()];
    difference |= static_cast<unsigned>(static_cast<unsigned char>(given[i]) ^
                                        static_cast<unsigned char>(expected));
  }
  return difference == 0;
}

std::string_view token_in(std::string_view text) {
  constexpr std::size_t kLeast = 16;
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  const std::string_view token = text.substr(0, end + 1);
  const bool is_good =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  return is_good && token.size() >= kLeast ? token : std::string_view{};
}

Verdict judge(const Visit& visit, std::string_view token) {
  if (visit.method != "GET" && visit.method != "HEAD") return {405, "only GET and HEAD"};
  if (token.empty()) {
    if (is_loopback_authority(visit.host)) return {};
    return {403, "ask for localhost or 127.0.0.1: other host names are refused"};
  }
  if (is_open(visit.path) || is_bearer(visit.authorization, token)) return {};
  return {401, "a bearer token is needed, that of sweeper.listen_token_file"};
}

Seconds most_silence(Seconds interval) {
  return std::max<Seconds>(5 * interval, std::chrono::minutes{2});
}

Verdict health_of(const Health& health, TimePoint now) {
  if (health.state == "stopped") return {503, "stopping"};
  const bool is_new = health.last_complete == TimePoint{};
  const Seconds silence = now - (is_new ? health.started : health.last_complete);
  if (silence <= most_silence(health.interval)) return {200, fmt::format("ok: {}", health.state)};
  const std::string reason = health.why.empty() ? "the round takes long" : health.why;
  return {503,
          fmt::format("no complete round {} {} s: {}",
                      is_new ? "since the start" : "for",
                      silence.count(),
                      reason)};
}

}  // namespace flex
