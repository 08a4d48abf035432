// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/credentials.h"

#include "lib/core/program.h"
#include "lib/core/trust.h"
#include "lib/gce/json_view.h"
#include "lib/gce/urls.h"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <pwd.h>
#include <unistd.h>
#include <utility>

namespace flex {
namespace {

constexpr std::string_view kGoogleTokenUrl = "https://oauth2.googleapis.com/token";
constexpr std::size_t kMaxKeyFile = 65536;

Error invalid(std::string what) {
  return {ErrorKind::Invalid, std::move(what), "BAD_CREDENTIALS"};
}

Result<Credentials> load_key_file(const std::string& path, const std::optional<uid_t>& slurm_user) {
  auto read = read_trusted_file(path, slurm_user, kMaxKeyFile);
  if (!read) {
    read.error().code = "BAD_CREDENTIALS";
    return std::move(read.error()).in(fmt::format("key file '{}'", path));
  }
  const Secret text(*std::move(read));
  auto credentials = parse_credentials(text.text());
  if (!credentials) return std::move(credentials.error()).in(fmt::format("key file '{}'", path));
  return credentials;
}

/// slurmctld starts programs without HOME.
std::string home_directory() {
  if (std::string home = environment("HOME"); !home.empty()) return home;
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return {};
  return entry.pw_dir;
}

std::string gcloud_file() {
  static constexpr std::string_view kName = "application_default_credentials.json";
  if (const std::string config = environment("CLOUDSDK_CONFIG"); !config.empty())
    return fmt::format("{}/{}", config, kName);
  const std::string home = home_directory();
  return home.empty() ? home : fmt::format("{}/.config/gcloud/{}", home, kName);
}

Result<std::string> token_url(const JsonView& view) {
  std::string url = view.text("token_uri");
  if (url.empty()) url = kGoogleTokenUrl;
  const auto origin = parse_origin(url);
  if (!origin) return origin.error().in("token_uri");
  if (origin->scheme != "https" && !is_loopback(origin->host))
    return invalid("token_uri: plain http goes to loopback only");
  return url;
}

Result<Credentials> read_service_account(const JsonView& view, std::string url) {
  ServiceAccount account{.email = view.text("client_email"),
                         .key_id = view.text("private_key_id"),
                         .private_key = Secret(view.text("private_key")),
                         .token_url = std::move(url),
                         .project = view.text("project_id")};
  if (account.email.empty()) return invalid("no client_email in it");
  if (account.private_key.text().empty()) return invalid("no private_key in it");
  return Credentials(std::move(account));
}

Result<Credentials> read_authorized_user(const JsonView& view, std::string url) {
  AuthorizedUser user{.client_id = view.text("client_id"),
                      .client_secret = Secret(view.text("client_secret")),
                      .refresh_token = Secret(view.text("refresh_token")),
                      .token_url = std::move(url)};
  if (user.client_id.empty() || user.client_secret.text().empty() ||
      user.refresh_token.text().empty())
    return invalid("client_id, client_secret or refresh_token is missing in it");
  return Credentials(std::move(user));
}

}  // namespace

Secret::~Secret() {
  if (!text_.empty()) explicit_bzero(text_.data(), text_.size());
}

Result<Credentials> parse_credentials(std::string_view text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return invalid("not a JSON object");
  std::optional<Error> wrong;
  const JsonView view(document, wrong);
  const std::string type = view.text("type");
  auto url = token_url(view);
  if (!url) return url.error();
  Result<Credentials> out =
      invalid(fmt::format("type '{}' is not supported: it takes service_account or authorized_user",
                          type.substr(0, 40)));
  if (type == "service_account")
    out = read_service_account(view, *std::move(url));
  else if (type == "authorized_user")
    out = read_authorized_user(view, *std::move(url));
  if (wrong) return invalid(wrong->what);
  return out;
}

Result<Credentials> load_credentials(const std::string& setting,
                                     const std::optional<uid_t>& slurm_user) {
  if (setting == "metadata") return Credentials(MetadataServer{});
  std::string path = setting == "auto" || setting.empty()
                         ? environment("GOOGLE_APPLICATION_CREDENTIALS")
                         : setting;
  if (!path.empty()) {
    auto named = load_key_file(path, slurm_user);
    // Named, so it has to be there.
    if (!named && named.error().kind == ErrorKind::NotFound)
      named.error().kind = ErrorKind::Invalid;
    return named;
  }
  path = gcloud_file();
  if (!path.empty()) {
    auto found = load_key_file(path, slurm_user);
    if (found || found.error().kind != ErrorKind::NotFound) return found;
  }
  return Credentials(MetadataServer{});
}

std::string metadata_host() {
  std::string given = environment("GCE_METADATA_HOST");
  if (given.empty() || given == "metadata.google.internal") return "169.254.169.254";
  return given;
}

}  // namespace flex
