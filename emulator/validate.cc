// SPDX-License-Identifier: GPL-2.0-or-later
// A request against the API's shapes: unknown names, wrong types, bad enums.
#include "emulator/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <limits>

namespace flex::emulator {

namespace {

using Problem = std::optional<std::string>;

bool is_number_text(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

bool fits(const std::string& type, const Json& value) {
  // 64-bit numbers come as strings or numbers; the parser leaves only the range to check.
  if (type == "uint64" && value.is_number_unsigned()) return true;
  if (type == "uint64" && value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && stop == text.data() + text.size();
  }
  if (value.is_number_float()) return false;
  const auto number = int_of(value);
  if (!number) return false;
  if (type == "int32" || type == "fixed32")
    return *number >= std::numeric_limits<std::int32_t>::min() &&
           *number <= std::numeric_limits<std::int32_t>::max();
  if (type == "uint32") return *number >= 0 && *number <= std::numeric_limits<std::uint32_t>::max();
  return type != "uint64" || *number >= 0;
}

Problem wrong_type(const std::string& path, std::string_view wanted, const Json& value) {
  return fmt::format("Invalid value at '{}' ({}), {}", path, wanted, value.dump());
}

Problem check_scalar(const FieldShape& field, const Json& value, const std::string& path) {
  if (field.type == "any") return std::nullopt;
  if (field.type == "enum") {
    if (!value.is_string()) return wrong_type(path, "enum", value);
    if (field.values.contains(value.get_ref<const std::string&>())) return std::nullopt;
    return fmt::format(
        "Invalid value for field '{}': {} is not one of its values.", path, value.dump());
  }
  if (field.type == "bool")
    return value.is_boolean() ? std::nullopt : wrong_type(path, "bool", value);
  if (field.type == "double" || field.type == "float")
    return value.is_number() ? std::nullopt : wrong_type(path, field.type, value);
  if (field.type == "string" || field.type == "bytes")
    return value.is_string() ? std::nullopt : wrong_type(path, field.type, value);
  return fits(field.type, value) ? std::nullopt : wrong_type(path, field.type, value);
}

Problem check_value(const Shapes& shapes,
                    const FieldShape& field,
                    const Json& value,
                    const std::string& path) {
  if (field.type == "message") return check_message(shapes, field.message, value, path);
  return check_scalar(field, value, path);
}

Problem check_field(const Shapes& shapes,
                    const FieldShape& field,
                    const Json& value,
                    const std::string& path) {
  if (value.is_null()) return std::nullopt;
  if (field.is_map) {
    if (!value.is_object()) return wrong_type(path, "map", value);
    for (const auto& [key, item] : value.items())
      if (auto bad = check_value(shapes, field, item, fmt::format("{}.{}", path, key))) return bad;
    return std::nullopt;
  }
  if (!field.is_repeated) return check_value(shapes, field, value, path);
  if (!value.is_array()) return wrong_type(path, "list", value);
  std::size_t index = 0;
  for (const Json& item : value)
    if (auto bad = check_value(shapes, field, item, fmt::format("{}[{}]", path, index++)))
      return bad;
  return std::nullopt;
}

Json strip_value(const Shapes& shapes, const FieldShape& field, const Json& value) {
  if (field.type != "message") return value;
  if (field.is_repeated && value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(without_output_only(shapes, field.message, item));
    return list;
  }
  if (field.is_map && value.is_object()) {
    Json map = Json::object();
    for (const auto& [key, item] : value.items())
      map[key] = without_output_only(shapes, field.message, item);
    return map;
  }
  return without_output_only(shapes, field.message, value);
}

}  // namespace

std::string from_snake_case(std::string_view name) {
  std::string text;
  bool is_upper = false;
  for (const char letter : name) {
    if (letter != '_')
      text +=
          is_upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(letter))) : letter;
    is_upper = letter == '_';
  }
  return text;
}

Query with_api_names(const MethodShape& method, const Query& query) {
  Query named;
  for (const auto& [name, value] : query) {
    const std::string other = from_snake_case(name);
    const bool is_known = !method.query.contains(name) && method.query.contains(other);
    named.emplace(is_known ? other : name, value);
  }
  return named;
}

std::optional<std::string> check_no_body(const MethodShape& method, const Json& body) {
  if (body.is_string() && body.get_ref<const std::string&>().empty()) return std::nullopt;
  if (!body.is_object()) return method.name + " takes no body.";
  for (const auto& [name, value] : body.items()) {
    const std::string known = from_snake_case(name);
    const bool is_path_parameter =
        std::find(method.pattern.begin(), method.pattern.end(), "{" + known + "}") !=
        method.pattern.end();
    if (!is_path_parameter && !method.query.contains(known))
      return fmt::format("Invalid JSON payload received. Unknown name \"{}\": {} takes no body.",
                         name,
                         method.name);
  }
  return std::nullopt;
}

std::optional<std::string> check_query(const Shapes& shapes,
                                       const MethodShape& method,
                                       const Query& query) {
  for (auto it = query.begin(); it != query.end(); ++it) {
    const auto& [name, value] = *it;
    if (shapes.is_standard_query(name)) continue;
    const auto known = method.query.find(name);
    if (known == method.query.end())
      return fmt::format("Unknown query parameter '{}' of {}.", name, method.name);
    if (query.count(name) > 1) return fmt::format("Query parameter '{}' given twice.", name);
    const std::string& type = known->second;
    const bool is_bool = type == "bool";
    const bool is_number = type.find("int") != std::string::npos;
    if ((is_bool && value != "true" && value != "false" && value != "True" && value != "False") ||
        (is_number && !parse_int(value)) || (type == "double" && !is_number_text(value)))
      return fmt::format("Invalid value for query parameter '{}' ({}): '{}'.", name, type, value);
    if (name == "requestId" && !is_uuid(value))
      return fmt::format("Invalid value for field 'requestId': '{}'. It must be a UUID.", value);
  }
  return std::nullopt;
}

std::optional<std::string> check_message(const Shapes& shapes,
                                         const std::string& message,
                                         const Json& value,
                                         const std::string& path) {
  const MessageShape* shape = shapes.message(message);
  if (shape == nullptr) return std::nullopt;
  if (!value.is_object()) return wrong_type(path.empty() ? "body" : path, message, value);
  for (const auto& [key, item] : value.items()) {
    const std::string where = path.empty() ? key : fmt::format("{}.{}", path, key);
    const auto field = shape->find(key);
    if (field == shape->end())
      return fmt::format(
          "Invalid JSON payload received. Unknown name \"{}\" at '{}': Cannot find "
          "field (in {}).",
          key,
          where,
          message);
    if (auto bad = check_field(shapes, field->second, item, where)) return bad;
  }
  return std::nullopt;
}

Json without_output_only(const Shapes& shapes, const std::string& message, const Json& value) {
  const MessageShape* shape = shapes.message(message);
  if (shape == nullptr || !value.is_object()) return value;
  Json kept = Json::object();
  for (const auto& [key, item] : value.items()) {
    const auto field = shape->find(key);
    if (item.is_null() || (field != shape->end() && field->second.is_output_only)) continue;
    kept[key] = field == shape->end() ? item : strip_value(shapes, field->second, item);
  }
  return kept;
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  bool is_zero = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return false;
    } else if (std::isxdigit(static_cast<unsigned char>(text[i])) == 0) {
      return false;
    } else if (text[i] != '0') {
      is_zero = false;
    }
  }
  return !is_zero;
}

}  // namespace flex::emulator
