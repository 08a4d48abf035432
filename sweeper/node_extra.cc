// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/node_extra.h"

#include "lib/core/token.h"

#include <nlohmann/json.hpp>

namespace flex {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kKey = "flex";

/// Ours in a plain text: the one that says when the VM ends. A token of another kind is not.
std::string with_lease_in_text(std::string_view extra, const std::optional<NodeLease>& lease) {
  const std::string ours = lease ? write_lease(*lease) : std::string{};
  for (const Token& token : find_tokens(extra)) {
    if (token.find("end").empty()) continue;
    std::string before(extra.substr(0, token.begin));
    std::string_view after = extra.substr(token.begin + token.size);
    // The space that we put before it goes with it.
    if (ours.empty() && before.ends_with(' ')) before.pop_back();
    if (ours.empty() && before.empty() && after.starts_with(' ')) after.remove_prefix(1);
    return before + ours + std::string(after);
  }
  if (ours.empty()) return std::string(extra);
  return extra.empty() ? ours : std::string(extra) + " " + ours;
}

}  // namespace

std::string with_lease(std::string_view extra, const std::optional<NodeLease>& lease) {
  if (!extra.starts_with('{')) return with_lease_in_text(extra, lease);
  Json json = Json::parse(extra, nullptr, false);
  if (!json.is_object()) return with_lease_in_text(extra, lease);
  if (lease)
    json[kKey] = write_lease(*lease);
  else if (json.erase(kKey) == 0)
    return std::string(extra);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace flex
