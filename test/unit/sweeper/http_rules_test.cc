// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/http_rules.h"

#include "test/support/catch.h"

using namespace flex;

namespace {

const std::string kToken = "0123456789abcdef";

int status(const std::string& path,
           const std::string& host,
           const std::string& authorization,
           const std::string& token,
           const std::string& method = "GET") {
  return judge({.method = method, .path = path, .host = host, .authorization = authorization},
               token)
      .status;
}

}  // namespace

TEST_CASE("http: without a token, whoever names this machine may look") {
  for (const char* path : {"/", "/metrics", "/status.json", "/healthz"}) {
    CHECK(status(path, "localhost:9762", "", "") == 200);
    CHECK(status(path, "127.0.0.1:9762", "", "") == 200);
    CHECK(status(path, "[::1]:9762", "", "") == 200);
    CHECK(status(path, "evil.example.com", "", "") == 403);
    CHECK(status(path, "", "", "") == 403);
  }
}

TEST_CASE("http: with a token, what tells of jobs needs it, under any name") {
  for (const char* path : {"/metrics", "/status.json", "/nowhere"}) {
    CHECK(status(path, "head.example.com", "Bearer " + kToken, kToken) == 200);
    CHECK(status(path, "localhost", "", kToken) == 401);
    CHECK(status(path, "localhost", "Bearer wrong", kToken) == 401);
    CHECK(status(path, "localhost", "Basic " + kToken, kToken) == 401);
  }
  CHECK(status("/healthz", "head.example.com", "", kToken) == 200);
  CHECK(status("/", "head.example.com", "", kToken) == 200);
}

TEST_CASE("http: nothing but GET and HEAD") {
  CHECK(status("/metrics", "localhost", "", "", "HEAD") == 200);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "get", ""})
    CHECK(status("/metrics", "localhost", "Bearer " + kToken, kToken, method) == 405);
}

TEST_CASE("http: exactly the token") {
  CHECK(is_bearer("Bearer " + kToken, kToken));
  CHECK(is_bearer("bearer " + kToken, kToken));
  CHECK_FALSE(is_bearer("Bearer " + kToken + "0", kToken));
  CHECK_FALSE(is_bearer("Bearer " + kToken + kToken, kToken));
  CHECK_FALSE(is_bearer("Bearer " + kToken.substr(1), kToken));
  CHECK_FALSE(is_bearer("Bearer ", kToken));
  CHECK_FALSE(is_bearer("Bearer", kToken));
  CHECK_FALSE(is_bearer("", kToken));
  CHECK_FALSE(is_bearer("Bearer ", ""));
  CHECK_FALSE(is_bearer("", ""));
}

TEST_CASE("http: a token is one line of visible characters") {
  CHECK(token_in(kToken + "\n") == kToken);
  CHECK(token_in(kToken + " \r\n\n") == kToken);
  CHECK(token_in("0123456789abcde").empty());
  CHECK(token_in("").empty());
  CHECK(token_in("\n").empty());
  CHECK(token_in(kToken + "\n" + kToken).empty());
  CHECK(token_in("0123456789 abcdef").empty());
  CHECK(token_in("0123456789abcdéf").empty());
}

TEST_CASE("health: as old as the last complete round") {
  const TimePoint start{Seconds{1'800'000'000}};
  Health health{.state = "starting",
                .why = {},
                .started = start,
                .last_complete = {},
                .interval = Seconds{15}};
  CHECK(most_silence(Seconds{15}) == Seconds{120});
  CHECK(most_silence(Seconds{60}) == Seconds{300});
  CHECK(health_of(health, start + Seconds{120}).status == 200);
  CHECK(health_of(health, start).why == "ok: starting");
  CHECK(health_of(health, start + Seconds{121}).status == 503);
  health.state = "active";
  health.last_complete = start + Seconds{1000};
  CHECK(health_of(health, start + Seconds{1120}).why == "ok: active");
  health.state = "waiting";
  health.why = "slurmctld: no answer";
  CHECK(health_of(health, start + Seconds{1100}).status == 200);
  CHECK(health_of(health, start + Seconds{1121}).why ==
        "no complete round for 121 s: slurmctld: no answer");
  health.state = "stopped";
  CHECK(health_of(health, start + Seconds{1000}).status == 503);
}
