// SPDX-License-Identifier: GPL-2.0-or-later
// A request against the API's shapes (pure).
#pragma once

#include "emulator/json.h"
#include "emulator/shapes.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace flex::emulator {

using Query = std::multimap<std::string, std::string>;

/// "request_id" to "requestId".
[[nodiscard]] std::string from_snake_case(std::string_view name);

/// The query with the method's own parameters under the names of the API: some of Google's clients
/// send request_id for requestId, and Google takes both.
[[nodiscard]] Query with_api_names(const MethodShape& method, const Query& query);

/// What is wrong with the body of a method that has none, or nothing. Google's clients send
/// nothing, an empty object, an empty text, or the whole request message: that has the method's
/// parameters.
[[nodiscard]] std::optional<std::string> check_no_body(const MethodShape& method, const Json& body);

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
