// SPDX-License-Identifier: GPL-2.0-or-later
// Filters of list calls: read into a list of conditions, then tried on each item.
#include "emulator/filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace flex::emulator {

namespace {

struct Token {
  std::string text{};
  bool is_quoted = false;
};

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

bool is_special(char c) {
  return c == '(' || c == ')' || c == '=' || c == '!' || c == ':' || c == '<' || c == '>' ||
         c == '"' || c == '\'' || c == '~';
}

std::optional<Token> read_quoted(const std::string& text, std::size_t& at) {
  const char quote = text[at++];
  Token token{.is_quoted = true};
  while (at < text.size() && text[at] != quote) {
    if (text[at] == '\\' && at + 1 < text.size() && (text[at + 1] == quote || text[at + 1] == '\\'))
      ++at;
    token.text += text[at++];
  }
  if (at >= text.size()) return std::nullopt;
  ++at;
  return token;
}

std::string read_sign(const std::string& text, std::size_t& at) {
  const char first = text[at++];
  std::string word(1, first);
  while (at < text.size() && (first == '!' || first == '<' || first == '>') &&
         (text[at] == '=' || text[at] == '~'))
    word += text[at++];
  return word;
}

/// A bare value may hold ':' (a URL): only a field's name ends there.
std::string read_word(const std::string& text, std::size_t& at, bool is_value) {
  std::string word;
  while (at < text.size() && !is_space(text[at]) && text[at] != '(' && text[at] != ')' &&
         (is_value || !is_special(text[at])))
    word += text[at++];
  return word;
}

/// Nothing: a quote without its end.
std::optional<std::vector<Token>> tokens_of(const std::string& text) {
  std::vector<Token> tokens;
  std::size_t at = 0;
  bool is_value = false;  // after a comparison
  while (at < text.size()) {
    const char c = text[at];
    if (is_space(c)) {
      ++at;
    } else if (c == '"' || c == '\'') {
      auto token = read_quoted(text, at);
      if (!token) return std::nullopt;
      tokens.push_back(std::move(*token));
      is_value = false;
    } else if (is_special(c) && !(is_value && (c == ':' || c == '~'))) {
      tokens.push_back({.text = read_sign(text, at)});
      is_value = c != '(' && c != ')';
    } else {
      tokens.push_back({.text = read_word(text, at, is_value)});
      is_value = tokens.back().text == "eq" || tokens.back().text == "ne";
    }
  }
  return tokens;
}

std::optional<Condition::Kind> kind_of(const std::string& word) {
  using Kind = Condition::Kind;
  static const std::map<std::string, Kind> kinds{{"=", Kind::Equal},
                                                 {"!=", Kind::NotEqual},
                                                 {"eq", Kind::Match},
                                                 {"ne", Kind::NotMatch},
                                                 {":", Kind::Has},
                                                 {"<", Kind::Less},
                                                 {"<=", Kind::LessEqual},
                                                 {">", Kind::Greater},
                                                 {">=", Kind::GreaterEqual},
                                                 {"~", Kind::Match},
                                                 {"!~", Kind::NotMatch}};
  const auto found = kinds.find(word);
  if (found == kinds.end()) return std::nullopt;
  return found->second;
}

/// `foo*` of the ':' operator as a pattern; without a star, it looks for the text anywhere.
std::string has_pattern(const std::string& value) {
  std::string pattern;
  for (const char c : value) {
    if (c == '*') {
      pattern += ".*";
      continue;
    }
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') pattern += '\\';
    pattern += c;
  }
  return value.find('*') == std::string::npos ? ".*" + pattern + ".*" : pattern;
}

Result<Condition> make_condition(const Token& field, const Token& sign, const Token& value) {
  const auto kind = kind_of(sign.text);
  if (field.is_quoted || sign.is_quoted || !kind)
    return Error{ErrorKind::Invalid, fmt::format("'{}' is not a comparison", sign.text)};
  Condition condition{.field = field.text, .value = value.text, .kind = *kind};
  const bool is_pattern = *kind == Condition::Kind::Match || *kind == Condition::Kind::NotMatch;
  if (!is_pattern && *kind != Condition::Kind::Has) return condition;
  try {
    condition.pattern = std::regex(
        is_pattern ? value.text : has_pattern(value.text),
        is_pattern ? std::regex::ECMAScript : std::regex::ECMAScript | std::regex::icase);
  } catch (const std::regex_error&) {
    return Error{ErrorKind::Invalid, fmt::format("'{}' is not a regular expression", value.text)};
  }
  return condition;
}

const Json& look_up(const Json& item, const std::string& path) {
  const Json* at = &item;
  std::size_t from = 0;
  while (from <= path.size()) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    at = &member(*at, path.substr(from, end - from));
    from = end + 1;
  }
  return *at;
}

std::string show(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? std::string() : value.dump();
}

bool compare(const Condition& condition, const Json& value) {
  using Kind = Condition::Kind;
  const std::string text = show(value);
  const auto left = parse_int(text);
  const auto right = parse_int(condition.value);
  const bool is_number = left.has_value() && right.has_value();
  const int order = is_number ? (*left < *right ? -1 : static_cast<int>(*left > *right))
                              : text.compare(condition.value);
  switch (condition.kind) {
    case Kind::Equal:
      return text == condition.value || text.ends_with("/" + condition.value);
    case Kind::NotEqual:
      return text != condition.value && !text.ends_with("/" + condition.value);
    case Kind::Match:
      return std::regex_match(text, condition.pattern);
    case Kind::NotMatch:
      return !std::regex_match(text, condition.pattern);
    case Kind::Has:
      return !value.is_null() && std::regex_match(text, condition.pattern);
    case Kind::Less:
      return order < 0;
    case Kind::LessEqual:
      return order <= 0;
    case Kind::Greater:
      return order > 0;
    case Kind::GreaterEqual:
      return order >= 0;
  }
  return false;
}

bool is_joiner(const Token& token) {
  return !token.is_quoted && (token.text == "(" || token.text == ")" || token.text == "AND");
}

}  // namespace

Result<Filter> parse_filter(const std::string& text) {
  const auto tokens = tokens_of(text);
  if (!tokens) return Error{ErrorKind::Invalid, "cannot be read: " + text};
  Filter filter;
  if (tokens->empty()) return filter;
  filter.any.emplace_back();
  bool is_negated = false;
  for (std::size_t i = 0; i < tokens->size(); ++i) {
    const Token& token = (*tokens)[i];
    if (is_joiner(token)) continue;
    if (!token.is_quoted && token.text == "OR") {
      filter.any.emplace_back();
      continue;
    }
    if (!token.is_quoted && token.text == "NOT") {
      is_negated = true;
      continue;
    }
    if (i + 2 >= tokens->size())
      return Error{ErrorKind::Invalid, "an incomplete comparison at '" + token.text + "'"};
    auto condition = make_condition(token, (*tokens)[i + 1], (*tokens)[i + 2]);
    if (!condition) return std::move(condition).error();
    condition->is_negated = is_negated;
    is_negated = false;
    filter.any.back().push_back(*std::move(condition));
    i += 2;
  }
  return filter;
}

bool matches(const Filter& filter, const Json& item) {
  if (filter.any.empty()) return true;
  return std::any_of(filter.any.begin(), filter.any.end(), [&item](const auto& all) {
    return std::all_of(all.begin(), all.end(), [&item](const Condition& condition) {
      return compare(condition, look_up(item, condition.field)) != condition.is_negated;
    });
  });
}

}  // namespace flex::emulator
