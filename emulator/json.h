// SPDX-License-Identifier: GPL-2.0-or-later
// The JSON type of the emulator, and small readers that never throw.
#pragma once

#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flex::emulator {

using Json = nlohmann::json;

/// A whole decimal number, or nothing.
inline std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// object[key] if both are there, else null.
inline const Json& member(const Json& object, std::string_view key) {
  static const Json null_value;
  if (!object.is_object()) return null_value;
  const auto found = object.find(std::string(key));
  return found == object.end() ? null_value : *found;
}

inline std::string text_of(const Json& object, std::string_view key, std::string fallback = {}) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::move(fallback);
}

/// A JSON number, or a string of digits as Google writes 64-bit numbers.
inline std::optional<std::int64_t> int_of(const Json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_string()) return parse_int(value.get_ref<const std::string&>());
  return std::nullopt;
}

inline double number_of(const Json& object, std::string_view key, double fallback) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : fallback;
}

inline bool flag_of(const Json& object, std::string_view key, bool fallback = false) {
  const Json& value = member(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

/// Seconds of a google.protobuf.Duration {"seconds": "600"}, or nothing.
inline std::optional<std::int64_t> duration_of(const Json& value) {
  return int_of(member(value, "seconds"));
}

}  // namespace flex::emulator
