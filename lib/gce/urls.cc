// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/urls.h"

#include <fmt/format.h>

#include <algorithm>

namespace flex {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alnum(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

Error bad_url(std::string_view why) {
  return {ErrorKind::Invalid, fmt::format("not a URL we can use: {}", why), "BAD_URL"};
}

/// Splits "host:port", "[v6]:port" or "host".
Result<Origin> parse_authority(std::string_view authority) {
  Origin origin;
  std::string_view rest;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return bad_url("'[' without ']'");
    origin.host = lower(authority.substr(1, close - 1));
    rest = authority.substr(close + 1);
    if (!std::all_of(origin.host.begin(), origin.host.end(), [](char c) {
          return is_alnum(c) || c == ':' || c == '.';
        }))
      return bad_url("bad IPv6 address");
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    origin.host = lower(authority.substr(0, colon));
    rest = authority.substr(colon);
    if (!std::all_of(origin.host.begin(), origin.host.end(), [](char c) {
          return is_alnum(c) || c == '-' || c == '.' || c == '_';
        }))
      return bad_url("bad host name");
  }
  if (origin.host.empty()) return bad_url("no host");
  if (rest.empty()) return origin;
  if (rest.size() < 2 || rest.size() > 6 || rest.front() != ':') return bad_url("bad port");
  rest.remove_prefix(1);
  if (!std::all_of(rest.begin(), rest.end(), is_digit)) return bad_url("bad port");
  origin.port = rest;
  return origin;
}

/// "127.x.y.z" with numbers only: "127.evil.example" is a name.
bool is_loopback_v4(std::string_view host) {
  if (!host.starts_with("127.")) return false;
  int dots = 0;
  std::size_t digits = 0;
  for (const char c : host) {
    if (c == '.') {
      if (digits == 0) return false;
      ++dots;
      digits = 0;
    } else if (is_digit(c) && digits < 3) {
      ++digits;
    } else {
      return false;
    }
  }
  return dots == 3 && digits > 0;
}

/// An RE2 pattern inside a quoted string: what is neither alphanumeric nor in `keep` becomes "any
/// character", and the caller looks at the answers again.
std::string prefix_filter(std::string_view field, std::string_view prefix, std::string_view keep) {
  if (prefix.empty()) return {};
  std::string pattern(prefix);
  for (char& c : pattern) {
    if (!is_alnum(c) && keep.find(c) == std::string_view::npos) c = '.';
  }
  return fmt::format("{} eq \"{}.*\"", field, pattern);
}

}  // namespace

std::string percent_encode(std::string_view text, std::string_view keep) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
        keep.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

std::string with_query(std::string path, const QueryParams& params) {
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [key, value] : params) {
    if (value.empty()) continue;
    path += separator;
    path += key;
    path += '=';
    // Legal in a query as they are, and `fields` stays readable in a journal.
    path += percent_encode(value, "(),/");
    separator = '&';
  }
  return path;
}

Result<Origin> parse_origin(std::string_view url) {
  const auto mark = url.find("://");
  if (mark == std::string_view::npos) return bad_url("no scheme");
  const std::string scheme = lower(url.substr(0, mark));
  if (scheme != "http" && scheme != "https") return bad_url("neither https nor http");
  for (const char c : url) {
    // Parsers differ about these, and what differs is how checks are passed by.
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == '\\')
      return bad_url("it has a space, a control character or a backslash");
  }
  std::string_view authority = url.substr(mark + 3);
  authority = authority.substr(0, std::min(authority.find_first_of("/?#"), authority.size()));
  if (authority.find('@') != std::string_view::npos) return bad_url("user information in it");
  auto origin = parse_authority(authority);
  if (origin) origin->scheme = scheme;
  return origin;
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || is_loopback_v4(host);
}

Result<std::string> parse_endpoint(std::string_view endpoint) {
  const auto origin = parse_origin(endpoint);
  if (!origin) return origin.error().in("endpoint");
  if (origin->scheme != "https" && !is_loopback(origin->host))
    return Error{
        ErrorKind::Invalid,
        fmt::format("endpoint: plain http goes to loopback only, not to '{}'", origin->host),
        "PLAIN_HTTP"};
  if (endpoint.find_first_of("?#") != std::string_view::npos)
    return bad_url("a query in it").in("endpoint");
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  static constexpr std::string_view kBase = "/compute/v1";
  if (endpoint.ends_with(kBase)) endpoint.remove_suffix(kBase.size());
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  return std::string(endpoint);
}

std::string project_url(std::string_view endpoint, std::string_view project) {
  // A domain-scoped project has a colon in its name.
  return fmt::format("{}/compute/v1/projects/{}", endpoint, percent_encode(project, ":"));
}

std::string groups_path(std::string_view region) {
  return fmt::format("/regions/{}/instanceGroupManagers", percent_encode(region));
}

std::string group_path(std::string_view region, const MigName& group) {
  return fmt::format("{}/{}", groups_path(region), percent_encode(group.text));
}

std::string requests_path(std::string_view region, const MigName& group) {
  return group_path(region, group) + "/resizeRequests";
}

std::string request_path(std::string_view region,
                         const MigName& group,
                         const RequestName& request) {
  return fmt::format("{}/{}", requests_path(region, group), percent_encode(request.text));
}

std::string operations_path(std::string_view region) {
  return fmt::format("/regions/{}/operations", percent_encode(region));
}

std::string operation_path(std::string_view region, std::string_view operation) {
  return fmt::format("{}/{}", operations_path(region), percent_encode(operation));
}

std::string zone_operation_path(std::string_view zone, std::string_view operation) {
  return fmt::format("/zones/{}/operations/{}", percent_encode(zone), percent_encode(operation));
}

std::string policies_path(std::string_view region) {
  return fmt::format("/regions/{}/resourcePolicies", percent_encode(region));
}

std::string policy_path(std::string_view region, std::string_view policy) {
  return fmt::format("{}/{}", policies_path(region), percent_encode(policy));
}

std::string instances_path(std::string_view zone) {
  return fmt::format("/zones/{}/instances", percent_encode(zone));
}

std::string instance_path(std::string_view zone, std::string_view instance) {
  return fmt::format("/zones/{}/instances/{}", percent_encode(zone), percent_encode(instance));
}

std::string serial_path(std::string_view zone, std::string_view instance) {
  return instance_path(zone, instance) + "/serialPort";
}

std::string template_url(std::string_view project, std::string_view given) {
  if (given.find('/') == std::string_view::npos)
    return fmt::format("projects/{}/global/instanceTemplates/{}", project, given);
  if (given.starts_with("regions/") || given.starts_with("global/"))
    return fmt::format("projects/{}/{}", project, given);
  return std::string(given);
}

std::string zone_url(std::string_view project, std::string_view zone) {
  if (zone.find('/') != std::string_view::npos) return std::string(zone);
  return fmt::format("projects/{}/zones/{}", project, zone);
}

std::string policy_url(std::string_view project, std::string_view region, std::string_view policy) {
  return fmt::format("projects/{}/regions/{}/resourcePolicies/{}", project, region, policy);
}

bool is_zone_of(std::string_view zone, std::string_view region) {
  return !region.empty() && zone.substr(0, zone.rfind('-')) == region && zone != region;
}

std::string_view zone_of(std::string_view url) {
  static constexpr std::string_view kZones = "zones/";
  const auto at = url.find(kZones);
  if (at == std::string_view::npos || (at > 0 && url[at - 1] != '/')) return {};
  const std::string_view rest = url.substr(at + kZones.size());
  return rest.substr(0, rest.find('/'));
}

std::string_view last_part(std::string_view url) {
  const auto slash = url.rfind('/');
  return slash == std::string_view::npos ? url : url.substr(slash + 1);
}

std::string name_filter(std::string_view prefix) {
  return prefix_filter("name", prefix, "-");
}

std::string description_filter(std::string_view prefix) {
  return prefix_filter("description", prefix, "-_ =");
}

}  // namespace flex
