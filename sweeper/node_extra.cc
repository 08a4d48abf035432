// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/node_extra.h"

#include "lib/core/token.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

namespace flex {

namespace {

constexpr std::string_view kBlank = " \t\r\n";

/// Ours: the token that says when the VM ends. One of another kind is not.
std::optional<Token> find_ours(std::string_view extra) {
  std::vector<Token> tokens = find_tokens(extra);
  const auto ours = std::find_if(
      tokens.begin(), tokens.end(), [](const Token& token) { return !token.find("end").empty(); });
  return ours == tokens.end() ? std::nullopt : std::optional{std::move(*ours)};
}

/// The text with `token` as something else.
std::string replaced(std::string_view text, const Token& token, const std::string& by) {
  return std::string(text.substr(0, token.begin)) + by +
         std::string(text.substr(token.begin + token.size));
}

/// Drops `what` and blanks before it from the end of the text; false if it does not end so.
bool drop_from_end(std::string_view& text, std::string_view what) {
  const std::size_t last = text.find_last_not_of(kBlank);
  const std::string_view trimmed = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  if (!trimmed.ends_with(what)) return false;
  text = trimmed.substr(0, trimmed.size() - what.size());
  return true;
}

/// The same at its beginning.
bool drop_from_start(std::string_view& text, std::string_view what) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos || !text.substr(first).starts_with(what)) return false;
  text.remove_prefix(first + what.size());
  return true;
}

// ---- a JSON object. Its text is edited and not written anew: numbers and blanks stay as they are.

/// Whether it is one, and whether anything is in it.
struct JsonObject {
  bool is_object = false;
  bool is_empty = true;
};

JsonObject look_at_json(std::string_view extra) {
  std::string_view start = extra;
  if (!drop_from_start(start, "{")) return {};
  const auto json = nlohmann::json::parse(extra, nullptr, false);
  return {.is_object = json.is_object(), .is_empty = json.empty()};
}

/// With the member "flex" and a comma beside it taken out. As it is, if it is not a member of ours.
std::string without_member(std::string_view extra, const Token& token) {
  std::string_view before = extra.substr(0, token.begin);
  std::string_view after = extra.substr(token.begin + token.size);
  if (!drop_from_end(before, "\"") || !drop_from_end(before, ":") ||
      !drop_from_end(before, "\"flex\"") || !drop_from_start(after, "\""))
    return std::string(extra);
  if (!drop_from_end(before, ",")) drop_from_start(after, ",");
  return std::string(before) + std::string(after);
}

std::string with_member(std::string_view extra, const std::string& token, bool is_empty) {
  const std::size_t end = extra.rfind('}');
  return std::string(extra.substr(0, end)) + (is_empty ? "" : ",") + "\"flex\":\"" + token + "\"" +
         std::string(extra.substr(end));
}

// ---- any other text

std::string without_word(std::string_view extra, const Token& token) {
  std::string_view before = extra.substr(0, token.begin);
  std::string_view after = extra.substr(token.begin + token.size);
  // The space that we put before it goes with it.
  if (before.ends_with(' '))
    before.remove_suffix(1);
  else if (before.empty() && after.starts_with(' '))
    after.remove_prefix(1);
  return std::string(before) + std::string(after);
}

}  // namespace

std::string with_lease(std::string_view extra, const std::optional<NodeLease>& lease) {
  const auto ours = find_ours(extra);
  if (lease && ours) return replaced(extra, *ours, write_lease(*lease));
  if (!lease && !ours) return std::string(extra);
  const JsonObject json = look_at_json(extra);
  if (ours) return json.is_object ? without_member(extra, *ours) : without_word(extra, *ours);
  const std::string token = write_lease(*lease);
  if (json.is_object) return with_member(extra, token, json.is_empty);
  return extra.empty() ? token : std::string(extra) + " " + token;
}

}  // namespace flex
