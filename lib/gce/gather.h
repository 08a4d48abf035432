// SPDX-License-Identifier: GPL-2.0-or-later
// Several lists that are read side by side, as one.
#pragma once

#include "lib/gce/cloud.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace flex {

/// For each of `count` lists, which is at least one: when the last of them has come, `then` gets
/// what is in all of them, or the first error.
template <class T>
[[nodiscard]] Then<std::vector<T>> gather(std::size_t count, Then<std::vector<T>> then) {
  struct Gathered {
    std::size_t left = 0;
    Result<std::vector<T>> all{std::vector<T>{}};
    Then<std::vector<T>> then{};
  };

  auto gathered = std::make_shared<Gathered>();
  gathered->left = count;
  gathered->then = std::move(then);
  return [gathered](Result<std::vector<T>> part) {
    if (!part && gathered->all)
      gathered->all = std::move(part.error());
    else if (part && gathered->all)
      std::move(part->begin(), part->end(), std::back_inserter(*gathered->all));
    if (--gathered->left == 0) gathered->then(std::move(gathered->all));
  };
}

}  // namespace flex
