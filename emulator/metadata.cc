// SPDX-License-Identifier: GPL-2.0-or-later
// The metadata server and an OAuth token endpoint: where clients get their tokens.
#include "emulator/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

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

/// What a VM can read of itself. Maps are directories; a list is shown one item a line.
Json metadata_tree(const std::string& project, const std::string& zone) {
  const Json account{{"aliases", {"default"}},
                     {"email", kEmail},
                     {"scopes", {"https://www.googleapis.com/auth/cloud-platform"}}};
  const std::string place = fmt::format("projects/{}/zones/{}", kProjectNumber, zone);
  const std::string type = fmt::format("projects/{}/machineTypes/e2-standard-4", kProjectNumber);
  const Json instance{{"attributes", Json::object()},
                      {"description", ""},
                      {"hostname", fmt::format("controller.{}.c.{}.internal", zone, project)},
                      {"id", 4520031799277581759},
                      {"machine-type", type},
                      {"name", "controller"},
                      {"scheduling",
                       {{"automatic-restart", "TRUE"},
                        {"on-host-maintenance", "MIGRATE"},
                        {"preemptible", "FALSE"}}},
                      {"service-accounts", {{"default", account}, {std::string(kEmail), account}}},
                      {"tags", Json::array()},
                      {"zone", place}};
  return Json{{"v1",
               {{"instance", instance},
                {"project",
                 {{"attributes", Json::object()},
                  {"numeric-project-id", 123456789012},
                  {"project-id", project}}},
                {"universe", {{"universe-domain", "googleapis.com"}}}}}};
}

/// Null: there is no such entry. The first part is "computeMetadata".
const Json* find_entry(const Json& tree, const std::vector<std::string>& parts) {
  const Json* at = &tree;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(parts[i]);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string leaf_text(const Json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string text;
  for (const Json& item : value) text += item.get<std::string>() + "\n";
  return text;
}

/// The names in a directory, one a line; those of directories end in a slash.
std::string listing(const Json& directory) {
  std::string text;
  for (const auto& [name, value] : directory.items())
    text += name + (value.is_object() ? "/\n" : "\n");
  if (directory.contains("email") && directory.contains("scopes")) text += "token\n";
  return text;
}

/// "service-accounts" to "serviceAccounts": names in JSON, but not those that a user chose.
std::string camel_case(std::string_view name) {
  if (name.find('@') != std::string_view::npos) return std::string(name);
  std::string text;
  bool is_upper = false;
  for (const char letter : name) {
    if (letter != '-')
      text +=
          is_upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    is_upper = letter == '-';
  }
  return text;
}

Json to_recursive(const Json& value) {
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [name, item] : value.items()) out[camel_case(name)] = to_recursive(item);
  return out;
}

/// A directory as a listing or, with recursive=true, as JSON of all that is below it.
HttpOut show_entry(const Json& entry, const Query& query) {
  const auto asks = [&query](const std::string& name, std::string_view value) {
    const auto found = query.find(name);
    return found != query.end() && found->second == value;
  };
  const bool is_recursive = asks("recursive", "true") || asks("recursive", "True");
  if (!(entry.is_object() && is_recursive) && !asks("alt", "json"))
    return text_out(200, entry.is_object() ? listing(entry) : leaf_text(entry));
  HttpOut out = json_out(200, to_recursive(entry));
  out.headers.emplace_back("Metadata-Flavor", "Google");
  return out;
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
  std::string project;
  std::string zone;
  {
    const std::lock_guard lock(mutex_);
    project = world_.settings.project;
    zone = world_.settings.zone;
  }
  const std::vector<std::string> parts = split_path(in.path);
  // A token is made when it is asked for; it is in no listing of values.
  const bool is_account = parts.size() == 6 && parts[1] == "v1" && parts[2] == "instance" &&
                          parts[3] == "service-accounts";
  if (is_account && (parts[4] == "default" || parts[4] == kEmail) && parts[5] == "token") {
    HttpOut out = json_out(200, issue_token());
    out.headers.emplace_back("Metadata-Flavor", "Google");
    return out;
  }
  const Json tree = metadata_tree(project, zone);
  const Json* at = find_entry(tree, parts);
  if (at == nullptr) return text_out(404, "not found\n");
  return show_entry(*at, in.query);
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
