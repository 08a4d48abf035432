// SPDX-License-Identifier: GPL-2.0-or-later
// Reading JSON that others wrote: missing is a default, a wrong type is remembered with its path.
#pragma once

#include "lib/core/result.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace flex {

/// A place in a document. Lives on the stack, below its parent. The first wrong type on the way is
/// kept in the document's `error`; what is read after that does not matter.
class JsonView {
 public:
  /// The document itself; it must be an object.
  JsonView(const nlohmann::json& value, std::optional<Error>& error)
      : value_(&value), error_(&error) {
    if (!value.is_object()) fail("an object");
  }

  [[nodiscard]] std::string text(std::string_view key) const;
  /// Google writes 64-bit numbers as strings; both are taken.
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t otherwise = 0) const;
  [[nodiscard]] double real(std::string_view key, double otherwise = 0) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  /// An empty view if it is not there.
  [[nodiscard]] JsonView object(std::string_view key) const;

  [[nodiscard]] bool is_there() const { return value_ != nullptr; }

  /// Calls `each(view)` for the objects of an array.
  template <class Each>
  void objects(std::string_view key, const Each& each) const {
    const nlohmann::json* array = find(key);
    if (array == nullptr) return;
    const JsonView list(array, this, key, kNoIndex);
    if (!array->is_array()) return list.fail("an array");
    std::size_t index = 0;
    for (const auto& item : *array) {
      const JsonView view(&item, &list, {}, index++);
      if (!item.is_object()) return view.fail("an object");
      each(view);
    }
  }

  /// Calls `each(text)` for the texts of an array.
  template <class Each>
  void texts(std::string_view key, const Each& each) const {
    const nlohmann::json* array = find(key);
    if (array == nullptr) return;
    const JsonView list(array, this, key, kNoIndex);
    if (!array->is_array()) return list.fail("an array");
    std::size_t index = 0;
    for (const auto& item : *array) {
      const auto* text = item.template get_ptr<const std::string*>();
      if (text == nullptr) return JsonView(&item, &list, {}, index).fail("a string");
      ++index;
      each(*text);
    }
  }

  /// Calls `each(key, view)` for the members of an object whose values are objects (a map).
  template <class Each>
  void members(std::string_view key, const Each& each) const {
    const JsonView map = object(key);
    if (!map.is_there() || !map.value_->is_object()) return;
    for (auto item = map.value_->begin(); item != map.value_->end(); ++item) {
      const JsonView view(&item.value(), &map, item.key(), kNoIndex);
      if (!item->is_object()) return view.fail("an object");
      each(std::string_view(item.key()), view);
    }
  }

  /// How many items an array has.
  [[nodiscard]] std::size_t size(std::string_view key) const;

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

  JsonView(const nlohmann::json* value,
           const JsonView* parent,
           std::string_view key,
           std::size_t index)
      : value_(value), parent_(parent), key_(key), index_(index), error_(parent->error_) {}

  /// Null counts as missing.
  [[nodiscard]] const nlohmann::json* find(std::string_view key) const;
  [[nodiscard]] std::string path() const;
  void fail(std::string_view expected) const;

  const nlohmann::json* value_;
  const JsonView* parent_ = nullptr;
  std::string_view key_{};
  std::size_t index_ = kNoIndex;
  std::optional<Error>* error_;
};

}  // namespace flex
