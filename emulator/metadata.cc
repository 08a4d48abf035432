// SPDX-License-Identifier: GPL-2.0-or-later
// The metadata server and an OAuth token endpoint: where clients get their tokens.
#include "emulator/front.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex::emulator {

namespace {

constexpr std::string_view kProjectNumber = "123456789012";
constexpr std::string_view kEmail = "123456789012-compute@developer.gserviceaccount.com";

HttpOut text_out(int status, std::string text) {
  return {.status = status,
          .body = std::move(text),
          .content_type = "application/text",
          .headers = {{"Metadata-Flavor", "Google"}}};
}

bool is_base64url(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
}

std::string decode_base64url(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    bits = (bits << 6U) | static_cast<std::uint32_t>(kDigits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
  }
  return out;
}

/// What is wrong with a service account's assertion, or empty. The signature is not checked: the
/// emulator does not know the key.
std::string check_assertion(const std::string& jwt) {
  const std::size_t first = jwt.find('.');
  const std::size_t second = first == std::string::npos ? first : jwt.find('.', first + 1);
  if (second == std::string::npos || jwt.find('.', second + 1) != std::string::npos)
    return "the assertion is not a JWT of three parts";
  const std::string_view whole = jwt;
  const std::string_view head = whole.substr(0, first);
  const std::string_view claims = whole.substr(first + 1, second - first - 1);
  if (!is_base64url(head) || !is_base64url(claims) || !is_base64url(whole.substr(second + 1)))
    return "a part of the assertion is not base64url";
  const Json header = Json::parse(decode_base64url(head), nullptr, false);
  if (text_of(header, "alg") != "RS256") return "the assertion's alg is not RS256";
  const Json body = Json::parse(decode_base64url(claims), nullptr, false);
  for (const char* claim : {"iss", "aud"})
    if (text_of(body, claim).empty()) return fmt::format("the assertion has no '{}'", claim);
  const auto issued = int_of(member(body, "iat"));
  const auto expires = int_of(member(body, "exp"));
  if (!issued || !expires || *expires <= *issued || *expires - *issued > 3600)
    return "the assertion's exp must be after iat and within an hour of it";
  return {};
}

}  // namespace

Json Front::issue_token() {
  const std::lock_guard lock(mutex_);
  const std::string token = "ya29.emulator-" + world_.random_suffix(40);
  tokens_.insert(token);
  return Json{{"access_token", token},
              {"expires_in", static_cast<std::int64_t>(world_.settings.token_seconds)},
              {"token_type", "Bearer"}};
}

HttpOut Front::handle_metadata(const HttpIn& in) {
  if (in.path == "/") return text_out(200, "computeMetadata/\n");
  if (in.metadata_flavor != "Google")
    return text_out(403, "Missing required header \"Metadata-Flavor\": \"Google\"\n");
  constexpr std::string_view kRoot = "/computeMetadata/v1/";
  const std::string what = in.path.size() < kRoot.size() ? "" : in.path.substr(kRoot.size());
  std::string project;
  std::string zone;
  {
    const std::lock_guard lock(mutex_);
    project = world_.settings.project;
    zone = world_.settings.zone;
  }
  const std::string account = "instance/service-accounts/default/";
  if (what == account + "token") {
    HttpOut out = json_out(200, issue_token());
    out.headers.emplace_back("Metadata-Flavor", "Google");
    return out;
  }
  if (what == account) {
    HttpOut out = json_out(200,
                           Json{{"email", kEmail},
                                {"aliases", {"default"}},
                                {"scopes", {"https://www.googleapis.com/auth/cloud-platform"}}});
    out.headers.emplace_back("Metadata-Flavor", "Google");
    return out;
  }
  if (what == account + "email") return text_out(200, std::string(kEmail));
  if (what == account + "scopes")
    return text_out(200, "https://www.googleapis.com/auth/cloud-platform\n");
  if (what == "project/project-id") return text_out(200, project);
  if (what == "project/numeric-project-id") return text_out(200, std::string(kProjectNumber));
  if (what == "instance/zone")
    return text_out(200, fmt::format("projects/{}/zones/{}", kProjectNumber, zone));
  if (what.empty()) return text_out(200, "instance/\nproject/\n");
  return text_out(404, "not found\n");
}

HttpOut Front::handle_token(const HttpIn& in) {
  const auto fail = [](const std::string& error, const std::string& why) {
    return json_out(400, Json{{"error", error}, {"error_description", why}});
  };
  if (in.verb != "POST") return fail("invalid_request", "POST only");
  const Query form = parse_query(in.body);
  const auto value = [&form](const std::string& name) {
    const auto found = form.find(name);
    return found == form.end() ? std::string() : found->second;
  };
  const std::string grant = value("grant_type");
  if (grant == "urn:ietf:params:oauth:grant-type:jwt-bearer") {
    const std::string why = check_assertion(value("assertion"));
    if (!why.empty()) return fail("invalid_grant", why);
    return json_out(200, issue_token());
  }
  if (grant == "refresh_token") {
    for (const char* name : {"refresh_token", "client_id", "client_secret"})
      if (value(name).empty()) return fail("invalid_request", fmt::format("no {}", name));
    return json_out(200, issue_token());
  }
  return fail("unsupported_grant_type", "grant_type '" + grant + "'");
}

}  // namespace flex::emulator
