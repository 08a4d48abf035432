// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/pause.h"

#include "lib/core/state_file.h"
#include "lib/slurm/node_state.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <system_error>
#include <unistd.h>

namespace flex {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostText = std::size_t{1} << 20U;
/// What follows the reason proper: how to end it.
constexpr std::string_view kThenPause = "; go on with: ";
constexpr std::string_view kThenBreaker = "; mend it, then: ";

}  // namespace

std::string Pause::why() const {
  return reason.empty() ? "paused by " + by : fmt::format("paused by {}: {}", by, reason);
}

std::string to_text(const Pauses& pauses) {
  Json json = Json::object();
  for (const auto& [nodeset, pause] : pauses)
    json[nodeset] = {{"by", pause.by},
                     {"reason", pause.reason},
                     {"since", pause.since.time_since_epoch().count()}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Pauses> parse_pauses(std::string_view text) {
  try {
    Pauses pauses;
    const Json json = Json::parse(text);
    if (!json.is_object()) return Error{ErrorKind::Invalid, "no list of paused nodesets"};
    for (const auto& [nodeset, value] : json.items())
      pauses[nodeset] = {.by = value.at("by").get<std::string>(),
                         .reason = value.at("reason").get<std::string>(),
                         .since = TimePoint{Seconds{value.at("since").get<std::int64_t>()}}};
    return pauses;
  } catch (const std::exception& error) {
    return Error{ErrorKind::Invalid, error.what()};
  }
}

std::string pauses_path(const std::string& state_dir) {
  return state_dir + "/paused.json";
}

Result<Pauses> load_pauses(const std::string& state_dir) {
  const auto text = read_small_file(pauses_path(state_dir), kMostText);
  if (!text && text.error().kind == ErrorKind::NotFound) return Pauses{};
  if (!text) return text.error();
  auto pauses = parse_pauses(*text);
  if (!pauses) return pauses.error().in(pauses_path(state_dir));
  return pauses;
}

Result<Done> write_pauses(const std::string& state_dir, const Pauses& pauses) {
  const std::string path = pauses_path(state_dir);
  if (!pauses.empty()) return write_atomically(path, to_text(pauses));
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return Done{};
  return Error{ErrorKind::Denied,
               fmt::format("{}: {}", path, std::generic_category().message(errno))};
}

std::string stop_mark(std::string_view nodeset) {
  return fmt::format("flex: nodeset {} stopped: ", nodeset);
}

std::string pause_reason(std::string_view nodeset, const Pause& pause) {
  return fmt::format(
      "{}{}{}flexctl resume {}", stop_mark(nodeset), pause.why(), kThenPause, nodeset);
}

bool is_stop_drained(const Node& node, std::string_view nodeset) {
  return is_draining(node) && node.reason.starts_with(stop_mark(nodeset));
}

std::string why_stopped(const Node& node, std::string_view nodeset) {
  std::string why = node.reason.substr(std::min(node.reason.size(), stop_mark(nodeset).size()));
  for (const std::string_view then : {kThenPause, kThenBreaker}) {
    const std::size_t end = why.rfind(then);
    if (end != std::string::npos) why.erase(end);
  }
  return why;
}

bool is_off(const Node& node) {
  return is_powered_down(node) && !is_powering_down(node) && is_idle(node) &&
         !is_power_up_requested(node);
}

bool is_to_drain(const Node& node) {
  return !is_draining(node) && !is_down(node) && (is_off(node) || is_up(node));
}

}  // namespace flex
