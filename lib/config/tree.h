// SPDX-License-Identifier: GPL-2.0-or-later
// YAML text to a plain tree with places. yaml-cpp's own nodes keep duplicate keys silently and
// follow aliases anywhere; this tree has neither.
#pragma once

#include "lib/config/problems.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// The largest file taken, and the deepest nesting: a real file needs four levels.
inline constexpr std::size_t kMaxConfigSize = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxDepth = 16;

struct TreeNode {
  enum class Kind {
    Null,
    Scalar,
    Sequence,
    Map,
    Bad,  ///< already reported: nobody should complain about it again
  };

  Kind kind = Kind::Null;
  Mark mark{};
  bool is_quoted = false;
  std::string text{};             ///< of a scalar
  std::vector<TreeNode> keys{};   ///< of a map: scalars, each once, as many as items
  std::vector<TreeNode> items{};  ///< of a map or a sequence
};

/// The one document in `text`. Nothing if it cannot be read at all; then, and where a part of it
/// cannot be used, `problems` says why. An empty document is a Null.
[[nodiscard]] std::optional<TreeNode> parse_tree(std::string_view text, Problems& problems);

}  // namespace flex
