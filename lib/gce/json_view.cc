// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/gce/json_view.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace flex {

const nlohmann::json* JsonView::find(std::string_view key) const {
  if (value_ == nullptr || !value_->is_object()) return nullptr;
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return nullptr;
  return &*found;
}

std::string JsonView::path() const {
  std::string out = parent_ == nullptr ? "$" : parent_->path();
  if (index_ != kNoIndex) {
    out += fmt::format("[{}]", index_);
  } else if (!key_.empty()) {
    out += '.';
    out += key_;
  }
  return out;
}

void JsonView::fail(std::string_view expected) const {
  if (error_->has_value()) return;
  *error_ = Error{ErrorKind::Internal,
                  fmt::format("{}: expected {}, found {}", path(), expected, value_->type_name()),
                  "BAD_REPLY"};
}

std::string JsonView::text(std::string_view key) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return {};
  if (const auto* value = found->get_ptr<const std::string*>()) return *value;
  JsonView(found, this, key, kNoIndex).fail("a string");
  return {};
}

std::int64_t JsonView::number(std::string_view key, std::int64_t otherwise) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return otherwise;
  if (const auto* value = found->get_ptr<const std::uint64_t*>()) {
    if (*value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return static_cast<std::int64_t>(*value);
  } else if (const auto* whole = found->get_ptr<const std::int64_t*>()) {
    return *whole;
  } else if (const auto* digits = found->get_ptr<const std::string*>()) {
    std::int64_t out = 0;
    const char* end = digits->data() + digits->size();
    const auto [stop, code] = std::from_chars(digits->data(), end, out);
    if (code == std::errc{} && stop == end && !digits->empty()) return out;
  }
  JsonView(found, this, key, kNoIndex).fail("a whole number");
  return otherwise;
}

double JsonView::real(std::string_view key, double otherwise) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return otherwise;
  if (found->is_number()) return found->get<double>();
  JsonView(found, this, key, kNoIndex).fail("a number");
  return otherwise;
}

bool JsonView::flag(std::string_view key, bool otherwise) const {
  const nlohmann::json* found = find(key);
  if (found == nullptr) return otherwise;
  if (const auto* value = found->get_ptr<const bool*>()) return *value;
  JsonView(found, this, key, kNoIndex).fail("true or false");
  return otherwise;
}

JsonView JsonView::object(std::string_view key) const {
  const nlohmann::json* found = find(key);
  JsonView view(found, this, key, kNoIndex);
  if (found != nullptr && !found->is_object()) view.fail("an object");
  return view;
}

std::size_t JsonView::size(std::string_view key) const {
  const nlohmann::json* found = find(key);
  return found != nullptr && found->is_array() ? found->size() : 0;
}

}  // namespace flex
