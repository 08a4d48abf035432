// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/node_extra.h"

#include "lib/core/token.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

namespace flex {

namespace {

constexpr std::string_view kBlank = " \t\r\n";

/// Our tokens: a key says which of them it is, and in a JSON object it is a member of this name.
struct Kind {
  std::string_view key{};
  std::string_view member{};
};

constexpr Kind kLease{.key = "end", .member = "flex"};
constexpr Kind kDrain{.key = "drained", .member = "flex_drained"};

std::optional<Token> find_ours(std::string_view extra, const Kind& kind) {
  std::vector<Token> tokens = find_tokens(extra);
  const auto ours = std::find_if(tokens.begin(), tokens.end(), [&](const Token& token) {
    return !token.find(kind.key).empty();
  });
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

std::string without_word(std::string_view extra, const Token& token);

/// With our member and a comma beside it taken out. Where another tool has moved the token into a
/// string of its own, only the token goes: the string stays, and the JSON stays valid.
std::string without_member(std::string_view extra, const Token& token, const Kind& kind) {
  std::string_view before = extra.substr(0, token.begin);
  std::string_view after = extra.substr(token.begin + token.size);
  if (!drop_from_end(before, "\"") || !drop_from_end(before, ":") ||
      !drop_from_end(before, "\"" + std::string(kind.member) + "\"") ||
      !drop_from_start(after, "\""))
    return without_word(extra, token);
  if (!drop_from_end(before, ",")) drop_from_start(after, ",");
  return std::string(before) + std::string(after);
}

std::string with_member(std::string_view extra,
                        const std::string& token,
                        const Kind& kind,
                        bool is_empty) {
  const std::size_t end = extra.rfind('}');
  return std::string(extra.substr(0, end)) + (is_empty ? "" : ",") + "\"" +
         std::string(kind.member) + "\":\"" + token + "\"" + std::string(extra.substr(end));
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

/// `extra` with this token in the place of ours of that kind; an empty one: without ours.
std::string with_token(std::string_view extra, const Kind& kind, const std::string& token) {
  const auto ours = find_ours(extra, kind);
  if (!token.empty() && ours) return replaced(extra, *ours, token);
  if (token.empty() && !ours) return std::string(extra);
  const JsonObject json = look_at_json(extra);
  if (ours) return json.is_object ? without_member(extra, *ours, kind) : without_word(extra, *ours);
  if (json.is_object) return with_member(extra, token, kind, json.is_empty);
  return extra.empty() ? token : std::string(extra) + " " + token;
}

// ---- reasons, which may have anything in them

bool is_plain(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') ||
         std::string_view{" ._:/@+-"}.find(letter) != std::string_view::npos;
}

/// Percent signs for all that a token or JSON takes for its own. Blanks at an end would be trimmed.
std::string encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string coded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_end = i == 0 || i + 1 == text.size();
    if (is_plain(text[i]) && !(is_end && text[i] == ' ')) {
      coded += text[i];
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    ((coded += '%') += kDigits[byte >> 4U]) += kDigits[byte & 15U];
  }
  return coded;
}

std::string decoded(std::string_view coded) {
  std::string text;
  for (std::size_t i = 0; i < coded.size(); ++i) {
    unsigned byte = 0;
    const char* const begin = coded.data() + i + 1;
    const bool is_coded = coded[i] == '%' && i + 2 < coded.size() &&
                          std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2;
    text += is_coded ? static_cast<char>(byte) : coded[i];
    if (is_coded) i += 2;
  }
  return text;
}

}  // namespace

std::string with_lease(std::string_view extra, const std::optional<NodeLease>& lease) {
  return with_token(extra, kLease, lease ? write_lease(*lease) : std::string{});
}

std::string with_drain_note(std::string_view extra, std::string_view reason) {
  if (reason.empty() || drain_note(extra) == reason) return std::string(extra);
  return with_token(extra, kDrain, write_token({{kDrain.key, encoded(reason)}}));
}

std::optional<std::string> drain_note(std::string_view extra) {
  const auto ours = find_ours(extra, kDrain);
  if (!ours) return std::nullopt;
  return decoded(ours->find(kDrain.key));
}

std::string without_drain_note(std::string_view extra) {
  return with_token(extra, kDrain, {});
}

}  // namespace flex
