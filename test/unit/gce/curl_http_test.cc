// SPDX-License-Identifier: GPL-2.0-or-later
// The real client over real sockets, on loopback.
#include "lib/gce/curl_http.h"

#include "lib/gce/rest_cloud.h"
#include "test/support/catch.h"
#include "test/unit/gce/loopback_server.h"

#include <cstdlib>
#include <optional>

using namespace flex;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

namespace {

std::unique_ptr<HttpClient> make_client(CurlSettings settings = {}) {
  auto http = make_curl_http(std::move(settings));
  REQUIRE(http);
  return *std::move(http);
}

Result<HttpResponse> fetch(HttpClient& http, HttpRequest request) {
  std::optional<Result<HttpResponse>> reply;
  http.send(std::move(request), [&](Result<HttpResponse> got) { reply = std::move(got); });
  http.run(steady_clock::now() + 20s);
  REQUIRE(reply);
  return *std::move(reply);
}

}  // namespace

TEST_CASE("curl_http: sends method, headers, token and body, and reads the reply", "[gce]") {
  std::string seen;
  LoopbackServer server([&](const std::string& request) {
    seen = request;
    return http_reply(503, "{}", "Retry-After: 7\r\nMetadata-Flavor: Google\r\n");
  });
  const auto http = make_client();
  const auto reply = fetch(*http,
                           {.method = "POST",
                            .url = server.url("/x?y=z"),
                            .headers = {"Content-Type: application/json"},
                            .body = "{\"a\":1}",
                            .bearer = "tok"});
  REQUIRE(reply);
  CHECK(reply->status == 503);
  CHECK(reply->body == "{}");
  CHECK(reply->retry_after == 7s);
  CHECK(reply->metadata_flavor == "Google");
  CHECK(reply->content_type == "application/json");
  CHECK_THAT(seen, StartsWith("POST /x?y=z HTTP/1.1\r\n"));
  CHECK_THAT(seen, ContainsSubstring("Authorization: Bearer tok\r\n"));
  CHECK_THAT(seen, ContainsSubstring("Accept-Encoding: "));
  CHECK_THAT(seen, EndsWith("\r\n\r\n{\"a\":1}"));
}

TEST_CASE("curl_http: an empty POST and a DELETE are what they say", "[gce]") {
  const auto [method, head] = GENERATE(table<std::string, std::string>({
      {"POST", "POST /x HTTP/1.1\r\n"},
      {"DELETE", "DELETE /x HTTP/1.1\r\n"},
      {"GET", "GET /x HTTP/1.1\r\n"},
  }));
  std::string seen;
  LoopbackServer server([&](const std::string& request) {
    seen = request;
    return http_reply(200, "{}");
  });
  const auto http = make_client();
  REQUIRE(fetch(*http, {.method = method, .url = server.url("/x")}));
  CHECK_THAT(seen, StartsWith(head));
  CHECK(seen.find("Content-Type") == std::string::npos);
  CHECK((seen.find("Content-Length: 0") != std::string::npos) == (method == "POST"));
}

TEST_CASE("curl_http: a URL that is not allowed is Invalid and goes nowhere", "[gce]") {
  const std::string url = GENERATE(as<std::string>{},
                                   "http://192.0.2.1/",
                                   "http://metadata.google.internal/",
                                   "ftp://127.0.0.1/",
                                   "file:///etc/passwd",
                                   "127.0.0.1");
  const auto http = make_client();
  const auto reply = fetch(*http, {.url = url, .timeout = 200ms});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::Invalid);
}

TEST_CASE("curl_http: no connection, a lost one and a time-out are Retry", "[gce]") {
  LoopbackServer server([](const std::string& request) {
    if (request.starts_with("GET /slow")) std::this_thread::sleep_for(500ms);
    return std::string{};
  });
  const auto http = make_client();
  for (const std::string& url :
       {std::string("http://127.0.0.1:1/"), server.url("/lost"), server.url("/slow")}) {
    CAPTURE(url);
    const auto reply = fetch(*http, {.url = url, .timeout = 200ms, .bearer = "hush"});
    REQUIRE_FALSE(reply);
    CHECK(reply.error().kind == ErrorKind::Retry);
    CHECK_THAT(reply.error().what, StartsWith("127.0.0.1:"));
    CHECK(reply.error().what.find("hush") == std::string::npos);
  }
}

TEST_CASE("curl_http: a redirect is an answer, not followed", "[gce]") {
  LoopbackServer server(
      [](const std::string&) { return http_reply(302, "", "Location: http://127.0.0.1:1/\r\n"); });
  const auto http = make_client();
  const auto reply = fetch(*http, {.url = server.url("/")});
  REQUIRE(reply);
  CHECK(reply->status == 302);
}

TEST_CASE("curl_http: keeps its connection, and ignores a proxy on loopback", "[gce]") {
  setenv("http_proxy", "http://127.0.0.1:1/", 1);
  LoopbackServer server([](const std::string&) { return http_reply(200, "{}"); });
  const auto http = make_client();
  for (int i = 0; i < 5; ++i) CHECK(fetch(*http, {.url = server.url("/")}));
  CHECK(server.connections() == 1);
  unsetenv("http_proxy");
}

TEST_CASE("curl_http: no more than max_in_flight at once, in order", "[gce]") {
  LoopbackServer server([](const std::string&) {
    std::this_thread::sleep_for(20ms);
    return http_reply(200, "{}");
  });
  const auto http = make_client({.max_in_flight = 4});
  int answers = 0;
  for (int i = 0; i < 20; ++i)
    http->send({.url = server.url("/")}, [&](const Result<HttpResponse>& reply) {
      CHECK(reply);
      ++answers;
    });
  http->run(steady_clock::now() + 20s);
  CHECK(answers == 20);
  CHECK(server.most_at_once() == 4);
  CHECK(server.connections() == 4);
}

TEST_CASE("curl_http: at the deadline all that is left is answered, what it starts too", "[gce]") {
  LoopbackServer server([](const std::string&) {
    std::this_thread::sleep_for(1s);
    return http_reply(200, "{}");
  });
  const auto http = make_client({.max_in_flight = 1});
  int refused = 0;
  int fired = 0;
  http->after(1h, [&] {
    ++fired;
    http->after(1h, [&] { ++fired; });
    http->after(0ms, [&] { ++fired; });
  });
  const HttpClient::Answer count = [&](const Result<HttpResponse>& reply) {
    REQUIRE_FALSE(reply);
    CHECK(reply.error().kind == ErrorKind::Retry);
    if (++refused == 1) http->send({.url = server.url("/late")}, count);
  };
  http->send({.url = server.url("/1")}, count);
  http->send({.url = server.url("/2")}, count);
  const auto began = steady_clock::now();
  http->run(began + 100ms);
  CHECK(steady_clock::now() - began < 900ms);
  CHECK(refused == 3);
  CHECK(fired == 2);
  // And it is good for another run.
  CHECK(fetch(*http, {.url = server.url("/again")}));
}

TEST_CASE("curl_http: the whole client works over it", "[gce]") {
  LoopbackServer server([&](const std::string& request) {
    if (request.find("/computeMetadata/") != std::string::npos)
      return http_reply(
          200, R"({"access_token":"t","expires_in":600})", "Metadata-Flavor: Google\r\n");
    if (request.find("Authorization: Bearer t\r\n") == std::string::npos)
      return http_reply(401, "{}");
    return http_reply(200, R"({"name":"g","targetSize":3})");
  });
  const std::string host = server.url("").substr(7);
  setenv("GCE_METADATA_HOST", host.c_str(), 1);
  auto cloud = open_cloud(
      {.endpoint = server.url(""), .project = "p", .region = "r", .credentials = "metadata"});
  REQUIRE(cloud);
  std::optional<Result<Group>> group;
  (*cloud)->fetch_group({"g"}, [&](Result<Group> got) { group = std::move(got); });
  (*cloud)->run();
  unsetenv("GCE_METADATA_HOST");
  REQUIRE(group);
  REQUIRE(*group);
  CHECK((*group)->target_size == 3);
  CHECK((*cloud)->stats().calls == 1);
}
