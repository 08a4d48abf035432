// SPDX-License-Identifier: GPL-2.0-or-later
// Reads and applies the `fields` parameter.
#include "emulator/fields.h"

namespace flex::emulator {

namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  bool list(FieldMask& mask) {
    do {
      if (!item(mask)) return false;
    } while (take(','));
    return true;
  }

  [[nodiscard]] bool is_at_end() const { return at_ == text_.size(); }

 private:
  bool item(FieldMask& mask) {
    std::string name;
    while (at_ < text_.size() &&
           std::string_view(",/()").find(text_[at_]) == std::string_view::npos)
      name += text_[at_++];
    if (name.empty()) return false;
    // Named twice, once as a whole: the whole wins by staying a leaf.
    const bool is_known = mask.names.contains(name);
    FieldMask& inner = mask.names[name];
    if (take('/')) return item(inner);
    if (take('(')) return list(inner) && take(')');
    if (is_known) inner.names.clear();
    return true;
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<FieldMask> parse_fields(const std::string& text) {
  FieldMask mask;
  Parser parser(text);
  if (!parser.list(mask) || !parser.is_at_end()) return std::nullopt;
  return mask;
}

Json apply_fields(const FieldMask& mask, const Json& value) {
  if (mask.names.empty()) return value;
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(apply_fields(mask, item));
    return list;
  }
  if (!value.is_object()) return value;
  const auto all = mask.names.find("*");
  Json kept = Json::object();
  for (const auto& [key, item] : value.items()) {
    const auto found = mask.names.find(key);
    if (found != mask.names.end())
      kept[key] = apply_fields(found->second, item);
    else if (all != mask.names.end())
      kept[key] = apply_fields(all->second, item);
  }
  return kept;
}

}  // namespace flex::emulator
