// SPDX-License-Identifier: GPL-2.0-or-later
// A whole reply to a struct (pure).
#pragma once

#include "lib/core/result.h"
#include "lib/gce/json_view.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <string_view>

namespace flex {

/// Parses and reads a whole document with `read(view)`.
template <class T, class Read>
Result<T> parse_document(std::string_view text, const Read& read) {
  const auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded())
    return Error{ErrorKind::Internal,
                 fmt::format("the reply is not JSON ({} bytes)", text.size()),
                 "BAD_REPLY"};
  std::optional<Error> error;
  T value = read(JsonView(document, error));
  if (error) return *std::move(error);
  return value;
}

}  // namespace flex
