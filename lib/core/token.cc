// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/token.h"

#include <algorithm>

namespace flex {

namespace {

constexpr std::string_view kOpen = "flex(";
constexpr std::string_view kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
}

std::vector<std::pair<std::string_view, std::string_view>> fields_of(std::string_view inside) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  while (!inside.empty()) {
    const std::string_view part = inside.substr(0, inside.find(','));
    inside.remove_prefix(std::min(inside.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view key = trimmed(part.substr(0, equals));
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : trimmed(part.substr(equals + 1));
    if (!key.empty() || !value.empty()) fields.emplace_back(key, value);
  }
  return fields;
}

}  // namespace

std::string_view Token::find(std::string_view key) const {
  const auto found = std::find_if(
      fields.rbegin(), fields.rend(), [&](const auto& field) { return field.first == key; });
  return found == fields.rend() ? std::string_view{} : found->second;
}

std::vector<Token> find_tokens(std::string_view text) {
  std::vector<Token> tokens;
  std::size_t at = 0;
  while ((at = text.find(kOpen, at)) != std::string_view::npos) {
    const std::size_t inside = at + kOpen.size();
    const std::size_t end = text.find_first_of("()", inside);
    if (end == std::string_view::npos) break;
    if ((at > 0 && is_word(text[at - 1])) || text[end] != ')') {
      at = inside;
      continue;
    }
    tokens.push_back({.begin = at,
                      .size = end + 1 - at,
                      .fields = fields_of(text.substr(inside, end - inside))});
    at = end + 1;
  }
  return tokens;
}

std::string write_token(const std::vector<std::pair<std::string_view, std::string>>& fields) {
  std::string token(kOpen);
  for (const auto& [key, value] : fields) {
    if (value.empty()) continue;
    if (token.size() > kOpen.size()) token += ',';
    token.append(key).append("=").append(value);
  }
  return token + ")";
}

}  // namespace flex
