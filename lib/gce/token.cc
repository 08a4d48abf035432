// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/token.h"

#include "lib/gce/errors.h"
#include "lib/gce/json_view.h"
#include "lib/gce/jwt.h"
#include "lib/gce/urls.h"
#include "lib/gce/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace flex {
namespace {

using namespace std::chrono_literals;

/// A token that expires sooner is fetched again: the call it goes with takes time, too.
constexpr auto kSpare = 75s;
constexpr std::chrono::milliseconds kMetadataTimeout = 5s;
constexpr std::string_view kForm = "Content-Type: application/x-www-form-urlencoded";

HttpRequest metadata_request(std::string_view path) {
  return {.url = fmt::format("http://{}/computeMetadata/v1/{}", metadata_host(), path),
          .headers = {"Metadata-Flavor: Google"},
          .timeout = kMetadataTimeout};
}

Result<HttpRequest> service_account_request(const ServiceAccount& account) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  auto jwt = make_jwt(account, now);
  if (!jwt) return std::move(jwt.error());
  return HttpRequest{
      .method = "POST",
      .url = account.token_url,
      .headers = {std::string(kForm)},
      .body = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=" + *jwt};
}

HttpRequest refresh_request(const AuthorizedUser& user) {
  return {
      .method = "POST",
      .url = user.token_url,
      .headers = {std::string(kForm)},
      .body = fmt::format("grant_type=refresh_token&client_id={}&client_secret={}&refresh_token={}",
                          percent_encode(user.client_id),
                          percent_encode(user.client_secret.text()),
                          percent_encode(user.refresh_token.text()))};
}

/// An error for anything but a 200 from who it should be from.
std::optional<Error> check_reply(const Result<HttpResponse>& reply, bool is_metadata) {
  if (!reply) return reply.error();
  if (is_metadata && reply->metadata_flavor != "Google")
    return Error{reply->status >= 500 ? ErrorKind::Retry : ErrorKind::Denied,
                 fmt::format("{} is no metadata server (HTTP {} without Metadata-Flavor)",
                             metadata_host(),
                             reply->status),
                 "NO_METADATA_SERVER"};
  if (reply->status == 200) return std::nullopt;
  return to_error(parse_complaint(reply->status, reply->body));
}

std::optional<std::chrono::milliseconds> hint(const Result<HttpResponse>& reply) {
  return reply ? reply->retry_after : std::nullopt;
}

bool is_project(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == ':';
  });
}

}  // namespace

Tokens::Tokens(HttpClient& http, Backoff& backoff, Credentials credentials)
    : http_(&http), backoff_(&backoff), credentials_(std::move(credentials)) {}

void Tokens::get(Then then) {
  if (!token_.text().empty() && http_->now() < good_until_) return then(token_.text());
  waiting_.push_back(std::move(then));
  if (waiting_.size() == 1) fetch(1);
}

void Tokens::forget(std::string_view token) {
  if (token_.text() == token) token_ = Secret{};
}

Result<HttpRequest> Tokens::make_request() const {
  if (const auto* account = std::get_if<ServiceAccount>(&credentials_))
    return service_account_request(*account);
  if (const auto* user = std::get_if<AuthorizedUser>(&credentials_)) return refresh_request(*user);
  return metadata_request("instance/service-accounts/default/token");
}

void Tokens::fetch(int tries) {
  auto request = make_request();
  if (!request) {
    http_->after(0ms, [this, error = explain(std::move(request.error()))] { settle(error); });
    return;
  }
  http_->send(*std::move(request),
              [this, tries](Result<HttpResponse> reply) { on_reply(tries, std::move(reply)); });
}

void Tokens::on_reply(int tries, Result<HttpResponse> reply) {
  const bool is_metadata = std::holds_alternative<MetadataServer>(credentials_);
  if (auto error = check_reply(reply, is_metadata)) {
    if (error->kind == ErrorKind::Retry &&
        backoff_->again(tries, hint(reply), [this, tries] { fetch(tries + 1); }))
      return;
    return settle(explain(*std::move(error)));
  }
  auto parsed = parse_token_reply(reply->body);
  explicit_bzero(reply->body.data(), reply->body.size());
  if (!parsed) return settle(explain(std::move(parsed.error())));
  token_ = std::move(parsed->token);
  good_until_ = http_->now() + parsed->lifetime - kSpare;
  settle(token_.text());
}

void Tokens::settle(const Result<std::string>& token) {
  // A waiter may ask again at once (after a 401): that is a new round.
  auto waiting = std::exchange(waiting_, {});
  for (const Then& then : waiting) then(token);
}

Error Tokens::explain(Error error) const {
  if (std::holds_alternative<MetadataServer>(credentials_)) {
    const bool has_no_account = error.kind == ErrorKind::NotFound;
    if (has_no_account) error.kind = ErrorKind::Denied;
    error.what += has_no_account
                      ? ": this VM has no service account; give it one with the compute scope, or "
                        "name a key file with 'credentials:'"
                      : fmt::format(
                            ": no token from the metadata server at {}; outside Google "
                            "Cloud name a key file with 'credentials:' or "
                            "GOOGLE_APPLICATION_CREDENTIALS",
                            metadata_host());
  } else if (error.kind == ErrorKind::Denied) {
    error.what += std::holds_alternative<ServiceAccount>(credentials_)
                      ? ": the key is revoked or disabled, or this machine's clock is wrong"
                      : ": log in again with 'gcloud auth application-default login'";
  }
  return std::move(error).in("access token");
}

void Tokens::fetch_project(const Then& then) {
  const auto* account = std::get_if<ServiceAccount>(&credentials_);
  if (account != nullptr && is_project(account->project)) return then(account->project);
  fetch_project(1, then);
}

void Tokens::fetch_project(int tries, const Then& then) {
  http_->send(metadata_request("project/project-id"),
              [this, tries, then](const Result<HttpResponse>& reply) {
                if (auto error = check_reply(reply, true)) {
                  if (error->kind == ErrorKind::Retry &&
                      backoff_->again(tries, hint(reply), [this, tries, then] {
                        fetch_project(tries + 1, then);
                      }))
                    return;
                  error->what += ": set 'project:' in the config";
                  return then(std::move(*error).in("project"));
                }
                if (is_project(reply->body)) return then(reply->body);
                then(Error{ErrorKind::Internal,
                           "project: the metadata server's answer is no project id",
                           "BAD_REPLY"});
              });
}

Result<TokenReply> parse_token_reply(std::string_view text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object())
    return Error{ErrorKind::Internal, "the reply is not JSON", "BAD_REPLY"};
  std::optional<Error> error;
  const JsonView view(document, error);
  TokenReply reply{.token = Secret(view.text("access_token")),
                   .lifetime = std::chrono::seconds{
                       std::clamp<std::int64_t>(view.number("expires_in", 300), 0, 86400)}};
  if (error) return *std::move(error);
  const std::string& token = reply.token.text();
  const bool is_clean =
      std::all_of(token.begin(), token.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  // It goes into a header: nothing may follow it there.
  if (token.empty() || !is_clean)
    return Error{ErrorKind::Internal, "no access_token in the reply", "BAD_REPLY"};
  return reply;
}

}  // namespace flex
