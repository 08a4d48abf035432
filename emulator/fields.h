// SPDX-License-Identifier: GPL-2.0-or-later
// The `fields` parameter: which parts of an answer are wanted (pure).
#pragma once

#include "emulator/json.h"

#include <map>
#include <optional>
#include <string>

namespace flex::emulator {

/// A tree of wanted names; a leaf is wanted whole.
struct FieldMask {
  std::map<std::string, FieldMask> names{};
};

/// `items(name,status/error),nextPageToken`, `a/b/c`, `*`. Nothing: cannot be read.
[[nodiscard]] std::optional<FieldMask> parse_fields(const std::string& text);

/// What of `value` the mask wants; lists are gone through item by item.
[[nodiscard]] Json apply_fields(const FieldMask& mask, const Json& value);

}  // namespace flex::emulator
