// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/token.h"

#include "lib/gce/jwt.h"
#include "lib/gce/rest_cloud.h"
#include "test/support/catch.h"
#include "test/support/fake_http.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <memory>
#include <optional>

using namespace flex;
using namespace std::chrono_literals;

namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Key make_key() {
  return {EVP_RSA_gen(2048), &EVP_PKEY_free};
}

std::string pem_of(EVP_PKEY* key) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(length)};
}

std::string from_base64url(const std::string& text) {
  std::string out;
  unsigned buffer = 0;
  unsigned bits = 0;
  for (const char c : text) {
    static const std::string kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    buffer = (buffer << 6U) | static_cast<unsigned>(kDigits.find(c));
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += static_cast<char>((buffer >> bits) & 255U);
    }
  }
  return out;
}

bool is_signed_by(EVP_PKEY* key, const std::string& text, const std::string& signature) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key);
  return EVP_DigestVerify(context.get(),
                          reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(),
                          reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
}

/// Tokens on a FakeHttp.
struct Bench {
  FakeHttp::Script script{};
  FakeHttp http{script};
  Backoff backoff;
  Tokens tokens;

  explicit Bench(Credentials credentials)
      : backoff(http, RetryPolicy{}, 120s), tokens(http, backoff, std::move(credentials)) {}

  Result<std::string> get() {
    std::optional<Result<std::string>> got;
    tokens.get([&](const Result<std::string>& token) { got = token; });
    http.run(backoff.deadline());
    REQUIRE(got);
    return *std::move(got);
  }
};

}  // namespace

TEST_CASE("base64url: as in RFC 4648", "[gce]") {
  CHECK(base64url("").empty());
  CHECK(base64url("f") == "Zg");
  CHECK(base64url("fo") == "Zm8");
  CHECK(base64url("foo") == "Zm9v");
  CHECK(base64url("\xfb\xff") == "-_8");
}

TEST_CASE("token: a service account's claim is signed by its key", "[gce]") {
  const Key key = make_key();
  Bench bench(ServiceAccount{.email = "sa@p1.iam.gserviceaccount.com",
                             .key_id = "k1",
                             .private_key = Secret(pem_of(key.get())),
                             .token_url = "https://oauth2.example/token"});
  bench.script.handler = [](const HttpRequest&) { return token_reply("sa-token"); };
  const auto token = bench.get();
  REQUIRE(token);
  CHECK(*token == "sa-token");
  REQUIRE(bench.script.log.size() == 1);
  const HttpRequest& sent = bench.script.log[0];
  CHECK(sent.method == "POST");
  CHECK(sent.url == "https://oauth2.example/token");
  const std::string form = "?" + sent.body;
  CHECK(query_value(form, "grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer");
  const std::string jwt = query_value(form, "assertion");
  const auto first = jwt.find('.');
  const auto second = jwt.rfind('.');
  REQUIRE(first < second);
  CHECK(is_signed_by(key.get(), jwt.substr(0, second), from_base64url(jwt.substr(second + 1))));
  CHECK_FALSE(
      is_signed_by(key.get(), jwt.substr(0, second) + "x", from_base64url(jwt.substr(second + 1))));
  const auto header = nlohmann::json::parse(from_base64url(jwt.substr(0, first)));
  CHECK(header == nlohmann::json::parse(R"({"alg":"RS256","typ":"JWT","kid":"k1"})"));
  const auto claims =
      nlohmann::json::parse(from_base64url(jwt.substr(first + 1, second - first - 1)));
  CHECK(claims["iss"] == "sa@p1.iam.gserviceaccount.com");
  CHECK(claims["aud"] == "https://oauth2.example/token");
  CHECK(claims["scope"] == "https://www.googleapis.com/auth/compute");
  CHECK(claims["exp"].get<long>() - claims["iat"].get<long>() == 3600);
}

TEST_CASE("token: a key that is none is Invalid and is not quoted", "[gce]") {
  const std::string pem =
      GENERATE(as<std::string>{},
               "c2VjcmV0",
               "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n");
  Bench bench(ServiceAccount{.email = "e", .private_key = Secret(pem), .token_url = "https://t"});
  const auto token = bench.get();
  REQUIRE_FALSE(token);
  CHECK(token.error().kind == ErrorKind::Invalid);
  CHECK(token.error().what.find("c2VjcmV0") == std::string::npos);
  CHECK(bench.script.log.empty());
}

TEST_CASE("token: a user's refresh token is sent in the form", "[gce]") {
  Bench bench(AuthorizedUser{.client_id = "id",
                             .client_secret = Secret("s&1"),
                             .refresh_token = Secret("r/1"),
                             .token_url = "https://t"});
  bench.script.handler = [](const HttpRequest&) { return token_reply("user-token"); };
  CHECK(*bench.get() == "user-token");
  CHECK(bench.script.log[0].body ==
        "grant_type=refresh_token&client_id=id&client_secret=s%261&refresh_token=r%2F1");
}

TEST_CASE("token: is kept, and fetched again shortly before it expires", "[gce]") {
  Bench bench(MetadataServer{});
  int fetched = 0;
  bench.script.handler = [&](const HttpRequest& request) {
    CHECK_THAT(request.url,
               EndsWith("/computeMetadata/v1/instance/service-accounts/default/token"));
    CHECK(request.headers == std::vector<std::string>{"Metadata-Flavor: Google"});
    return token_reply(fmt::format("t{}", ++fetched), 3600);
  };
  CHECK(*bench.get() == "t1");
  CHECK(*bench.get() == "t1");
  bench.script.now += 3600s - 80s;
  CHECK(*bench.get() == "t1");
  bench.script.now += 20s;
  bench.backoff.set_deadline(bench.script.now + 10s);
  CHECK(*bench.get() == "t2");
  bench.tokens.forget("t1");
  CHECK(*bench.get() == "t2");
  bench.tokens.forget("t2");
  CHECK(*bench.get() == "t3");
}

TEST_CASE("token: passing trouble is tried again, a refusal is explained", "[gce]") {
  const auto [status, flavor, tries, kind, words] =
      GENERATE(table<int, std::string, int, ErrorKind, std::string>({
          {503, "Google", 10, ErrorKind::Retry, "metadata server"},
          {404, "Google", 1, ErrorKind::Denied, "no service account"},
          {403, "Google", 1, ErrorKind::Denied, "metadata server"},
          {200, "", 1, ErrorKind::Denied, "no metadata server"},
          {200, "Evil", 1, ErrorKind::Denied, "no metadata server"},
      }));
  CAPTURE(status, flavor);
  Bench bench(MetadataServer{});
  bench.script.handler = [status = status, flavor = flavor](const HttpRequest&) {
    HttpResponse reply = token_reply("hidden-token");
    reply.status = status;
    reply.metadata_flavor = flavor;
    return reply;
  };
  const auto token = bench.get();
  REQUIRE_FALSE(token);
  CHECK(to_string(token.error().kind) == to_string(kind));
  CHECK_THAT(token.error().what, ContainsSubstring(words));
  CHECK(token.error().what.find("hidden-token") == std::string::npos);
  CHECK(bench.script.log.size() == static_cast<std::size_t>(tries));
}

TEST_CASE("token: a reply that could break a header is refused", "[gce]") {
  const std::string text = GENERATE(as<std::string>{},
                                    "",
                                    "{}",
                                    "[]",
                                    R"({"access_token":""})",
                                    R"({"access_token":7})",
                                    R"({"access_token":"a\r\nHost: b"})",
                                    R"({"access_token":"a b"})",
                                    R"({"access_token":"a","expires_in":"soon"})");
  CAPTURE(text);
  const auto reply = parse_token_reply(text);
  REQUIRE_FALSE(reply);
  CHECK(reply.error().kind == ErrorKind::Internal);
}

TEST_CASE("token: a 401 is met with one new token, then it is Denied", "[gce]") {
  const bool is_stubborn = GENERATE(false, true);
  int tokens = 0;
  std::vector<std::string> seen;
  FakeHttp::Script script;
  script.handler = [&](const HttpRequest& request) {
    if (is_metadata(request)) return token_reply(fmt::format("t{}", ++tokens));
    seen.push_back(request.bearer);
    if (is_stubborn || request.bearer == "t1") return refusal(401, "authError");
    return ok(R"({"name":"g"})");
  };
  auto cloud = open_cloud({.project = "p1", .region = "r1", .credentials = "metadata"},
                          std::make_unique<FakeHttp>(script));
  REQUIRE(cloud);
  std::optional<Result<Group>> group;
  (*cloud)->fetch_group({"g"}, [&](Result<Group> got) { group = std::move(got); });
  (*cloud)->run();
  REQUIRE(group);
  CHECK(seen == std::vector<std::string>{"t1", "t2"});
  CHECK(group->has_value() == !is_stubborn);
  if (is_stubborn) CHECK(group->error().kind == ErrorKind::Denied);
}

TEST_CASE("token: a project that is not set is asked of the metadata server, once", "[gce]") {
  FakeHttp::Script script;
  int asked = 0;
  script.handler = [&](const HttpRequest& request) {
    if (request.url.find("project/project-id") != std::string::npos) {
      ++asked;
      HttpResponse reply = ok("the-project");
      reply.metadata_flavor = "Google";
      return reply;
    }
    if (is_metadata(request)) return token_reply("t");
    CHECK_THAT(request.url, ContainsSubstring("/projects/the-project/regions/"));
    return ok(R"({"name":"g"})");
  };
  auto cloud =
      open_cloud({.region = "r1", .credentials = "metadata"}, std::make_unique<FakeHttp>(script));
  REQUIRE(cloud);
  int good = 0;
  for (int i = 0; i < 3; ++i)
    (*cloud)->fetch_group({"g"}, [&](Result<Group> group) { good += group ? 1 : 0; });
  (*cloud)->run();
  CHECK(good == 3);
  CHECK(asked == 1);
}

TEST_CASE("token: without a project and a metadata server the error says what to set", "[gce]") {
  FakeHttp::Script script;
  script.handler = [](const HttpRequest&) -> Result<HttpResponse> {
    return Error{ErrorKind::Retry, "could not connect", "HTTP_FAILED"};
  };
  auto cloud =
      open_cloud({.region = "r1", .credentials = "metadata"}, std::make_unique<FakeHttp>(script));
  REQUIRE(cloud);
  std::optional<Result<Group>> group;
  (*cloud)->fetch_group({"g"}, [&](Result<Group> got) { group = std::move(got); });
  (*cloud)->run();
  REQUIRE(group);
  REQUIRE_FALSE(*group);
  CHECK_THAT(group->error().what, ContainsSubstring("set 'project:'"));
}
