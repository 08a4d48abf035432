// SPDX-License-Identifier: GPL-2.0-or-later
// A request against the API's shapes (pure).
#pragma once

#include "emulator/json.h"
#include "emulator/shapes.h"

#include <map>
#include <optional>
#include <string>

namespace flex::emulator {

using Query = std::multimap<std::string, std::string>;

/// What is wrong with the query, or nothing: an unknown parameter, one given twice, a bad number.
[[nodiscard]] std::optional<std::string> check_query(const Shapes& shapes,
                                                     const MethodShape& method,
                                                     const Query& query);

/// What is wrong with `value` as a message, with the path of the field, or nothing.
[[nodiscard]] std::optional<std::string> check_message(const Shapes& shapes,
                                                       const std::string& message,
                                                       const Json& value,
                                                       const std::string& path = {});

/// `value` without the fields that only the server sets: Google ignores them in a request.
[[nodiscard]] Json without_output_only(const Shapes& shapes,
                                       const std::string& message,
                                       const Json& value);

/// 8-4-4-4-12 hex digits, not all zero.
[[nodiscard]] bool is_uuid(std::string_view text);

}  // namespace flex::emulator
