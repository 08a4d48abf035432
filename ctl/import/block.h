// SPDX-License-Identifier: GPL-2.0-or-later
// A section of a neighbour's file: typed values by name, and which of its keys nobody asked for
// (pure).
#pragma once

#include "ctl/import/report.h"
#include "lib/config/tree.h"
#include "lib/core/domain.h"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// How a name stands in a file: as it is, or also in camelCase.
enum class Spelling { Snake, Any };

/// What all sections of a file share.
struct Source {
  Problems& problems;
  Spelling spelling = Spelling::Snake;
  /// A blueprint's `vars`: behind every setting that is not there, and for "$(vars.name)".
  const TreeNode* vars = nullptr;
};

/// A value with its name. Not set: the file does not say.
template <class T>
struct Taken {
  std::optional<T> value{};
  Mark mark{};
  std::string from{};

  explicit operator bool() const { return value.has_value(); }

  const T& operator*() const { return *value; }
};

class Block {
 public:
  /// `path` is in front of the keys in messages: "settings.".
  Block(Source& source, const TreeNode& map, std::string path)
      : source_(source), map_(map), path_(std::move(path)) {}

  [[nodiscard]] Mark mark() const { return map_.mark; }

  /// True if it is said at all; it counts as asked for.
  bool has(std::string_view name) { return find(name).node != nullptr; }

  /// A value of the wrong kind is reported and counts as not said; so do null and an empty text.
  Taken<std::size_t> number(std::string_view name, std::size_t most);
  Taken<bool> boolean(std::string_view name);
  Taken<std::string> text(std::string_view name);
  /// Whole seconds: 3600, "3600", "3600s".
  Taken<Seconds> duration(std::string_view name);
  /// A list of texts; each with its own mark.
  std::vector<Taken<std::string>> texts(std::string_view name);
  /// A section; nothing if it is not there.
  std::optional<Block> section(std::string_view name);
  /// The sections of a list.
  std::vector<Block> sections(std::string_view name);

  /// The keys that were not asked for, in the file's order.
  [[nodiscard]] std::vector<const TreeNode*> rest() const;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Value {
    const TreeNode* node = nullptr;  ///< null: not said
    Mark mark{};
    std::string from{};
  };

  /// The value, references to `vars` followed; marks the key as asked for.
  Value find(std::string_view name);
  Value follow(Value value) const;
  /// True for a scalar; says otherwise.
  bool is_scalar(const Value& value, std::string_view wanted) const;

  Source& source_;
  const TreeNode& map_;
  std::string path_;
  std::set<std::string, std::less<>> asked_{};
};

/// "min_node_count" for "minNodeCount".
[[nodiscard]] std::string to_snake(std::string_view name);

/// The value of a key in a map as it stands; null if it is not there.
[[nodiscard]] const TreeNode* child(const TreeNode& map,
                                    std::string_view name,
                                    Spelling spelling = Spelling::Snake);

}  // namespace flex
