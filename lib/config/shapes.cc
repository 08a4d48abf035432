// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/shapes.h"

#include "lib/core/names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace flex {

namespace {

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool all_lower(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_lower);
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The number in `text` if it is one of 0 … most, written without signs or leading zeros.
std::optional<unsigned> small_number(std::string_view text, unsigned most) {
  if (!all_digits(text) || text.size() > 5 || (text.size() > 1 && text.front() == '0'))
    return std::nullopt;
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (value > most) return std::nullopt;
  return value;
}

/// "central1": letters, then digits.
bool is_region_end(std::string_view text) {
  const std::size_t letters = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  return letters != std::string_view::npos && letters > 0 && all_digits(text.substr(letters));
}

struct HostPort {
  std::string_view host{};
  std::optional<unsigned> port{};
};

bool is_host_name(std::string_view host) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [](char c) {
    return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_';
  });
}

bool is_ipv6_text(std::string_view host) {
  return host.size() >= 2 && host.size() <= 45 && std::all_of(host.begin(), host.end(), [](char c) {
           return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
                  c == '.';
         });
}

/// "host", "host:port", "[v6]", "[v6]:port"; the host of a v6 address keeps its brackets.
std::optional<HostPort> split_host(std::string_view text) {
  HostPort parts;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos || !is_ipv6_text(text.substr(1, end - 1)))
      return std::nullopt;
    parts.host = text.substr(0, end + 1);
    rest = text.substr(end + 1);
  } else {
    const std::size_t end = std::min(text.find(':'), text.size());
    parts.host = text.substr(0, end);
    rest = text.substr(end);
    if (!is_host_name(parts.host)) return std::nullopt;
  }
  if (rest.empty()) return parts;
  if (rest.front() != ':') return std::nullopt;
  parts.port = small_number(rest.substr(1), 65535);
  if (!parts.port) return std::nullopt;
  return parts;
}

bool is_loopback(std::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  const auto parts = split(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return small_number(part, 255).has_value();
         });
}

/// Those that Slurm knows by name, too.
constexpr std::array<std::pair<std::string_view, int>, 13> kSignals{{
    {"HUP", SIGHUP},
    {"INT", SIGINT},
    {"QUIT", SIGQUIT},
    {"ABRT", SIGABRT},
    {"ALRM", SIGALRM},
    {"TERM", SIGTERM},
    {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},
    {"URG", SIGURG},
    {"CONT", SIGCONT},
    {"TSTP", SIGTSTP},
    {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU},
}};

/// "URG" for "SIGURG", "sigurg", "urg".
std::string plain_signal(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (is_lower(c)) c = static_cast<char>(c - 'a' + 'A');
  return upper.starts_with("SIG") ? upper.substr(3) : upper;
}

/// What follows "/compute/v1/" in a full URL, the text itself if it is none.
std::string_view template_path(std::string_view text) {
  if (text.find("://") == std::string_view::npos) return text;
  constexpr std::string_view kBase = "/compute/v1/";
  const std::size_t base = text.find(kBase);
  if (base == std::string_view::npos || !why_bad_endpoint(text.substr(0, base)).empty()) return {};
  const std::string_view path = text.substr(base + kBase.size());
  return path.starts_with("projects/") ? path : std::string_view{};
}

/// A template's path in pieces, without the project: {"regions", "R", "instanceTemplates", "name"}.
/// Empty if the project is malformed.
std::vector<std::string_view> template_parts(std::string_view text) {
  auto parts = split(template_path(text), '/');
  if (parts.size() > 2 && parts[0] == "projects") {
    if (!is_project(parts[1])) return {};
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  return parts;
}

}  // namespace

bool is_region(std::string_view text) {
  const auto parts = split(text, '-');
  return text.size() <= kMaxNameLength && parts.size() == 2 && all_lower(parts[0]) &&
         is_region_end(parts[1]);
}

bool is_zone(std::string_view text) {
  const std::size_t end = text.rfind('-');
  return end != std::string_view::npos && text.size() <= kMaxNameLength &&
         is_region(text.substr(0, end)) && is_zone_end(text.substr(end + 1));
}

bool is_zone_end(std::string_view text) {
  if (text.size() == 1) return is_lower(text.front());
  // "ai1b"
  return text.size() >= 4 && text.starts_with("ai") && is_lower(text.back()) &&
         all_digits(text.substr(2, text.size() - 3));
}

std::string region_of(std::string_view zone) {
  return std::string(zone.substr(0, zone.rfind('-')));
}

bool is_cluster_name(std::string_view text) {
  return !text.empty() && text.size() <= 40 && (is_lower(text.front()) || is_digit(text.front())) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return is_lower(c) || is_digit(c) || c == '-' || c == '_';
         });
}

bool is_project(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view id = colon == std::string_view::npos ? text : text.substr(colon + 1);
  if (!is_rfc1035(id)) return false;
  return colon == std::string_view::npos || is_host_name(text.substr(0, colon));
}

std::string why_bad_endpoint(std::string_view text) {
  const bool is_https = text.starts_with("https://");
  if (!is_https && !text.starts_with("http://")) return "it does not start with https://";
  std::string_view rest = text.substr(is_https ? 8 : 7);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#") != std::string_view::npos)
    return "there is something after the host";
  if (rest.find('@') != std::string_view::npos) return "there is a user name in it";
  const auto parts = split_host(rest);
  if (!parts || parts->port == 0U) return "the host or port is malformed";
  if (!is_https && !is_loopback(parts->host)) return "plain http is only for this machine";
  return {};
}

bool is_template(std::string_view text) {
  if (text.size() > 512) return false;
  if (is_rfc1035(text)) return true;
  const auto parts = template_parts(text);
  const bool is_global = parts.size() == 3 && parts[0] == "global";
  const bool is_regional = parts.size() == 4 && parts[0] == "regions" && is_region(parts[1]);
  return (is_global || is_regional) && parts[parts.size() - 2] == "instanceTemplates" &&
         is_rfc1035(parts.back());
}

std::string template_region(std::string_view text) {
  const auto parts = template_parts(text);
  return parts.size() == 4 && parts[0] == "regions" ? std::string(parts[1]) : std::string{};
}

std::optional<ListenAddress> parse_listen(std::string_view text) {
  const auto parts = split_host(text);
  if (!parts || !parts->port) return std::nullopt;
  const bool is_bracketed = parts->host.starts_with('[');
  return ListenAddress{
      .host =
          std::string(is_bracketed ? parts->host.substr(1, parts->host.size() - 2) : parts->host),
      .port = static_cast<int>(*parts->port),
      .is_loopback = is_loopback(parts->host)};
}

bool is_listen_setting(std::string_view text) {
  return text == "off" || parse_listen(text).has_value();
}

bool is_loopback_authority(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto parts = split_host(lower);
  return parts && is_loopback(parts->host);
}

bool is_machine_type(std::string_view text) {
  return is_rfc1035(text);
}

bool can_be_placed(std::string_view machine_type) {
  constexpr std::array<std::string_view, 3> kFamilies{"a3-ultragpu-", "a4-", "h4d-"};
  return std::any_of(kFamilies.begin(), kFamilies.end(), [&](std::string_view family) {
    return machine_type.starts_with(family);
  });
}

bool is_topology(std::string_view text) {
  const auto sides = split(text, 'x');
  return (sides.size() == 2 || sides.size() == 3) &&
         std::all_of(sides.begin(), sides.end(), [](std::string_view side) {
           return small_number(side, 9999).value_or(0) > 0;
         });
}

std::optional<int> signal_number(std::string_view name) {
  const std::string plain = plain_signal(name);
  if (plain == "NONE") return 0;
  for (const auto& [known, number] : kSignals)
    if (known == plain) return number;
  return std::nullopt;
}

bool is_deaf_signal(std::string_view name) {
  const std::string plain = plain_signal(name);
  return plain == "KILL" || plain == "STOP";
}

std::string signal_names() {
  std::string names;
  for (const auto& [known, number] : kSignals) {
    if (!names.empty()) names += ", ";
    names += known;
  }
  return names;
}

}  // namespace flex
