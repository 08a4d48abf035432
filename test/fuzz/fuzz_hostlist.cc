// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as a node list: what is taken can be folded and expanded again.
#include "lib/slurm/hostlist.h"
#include "test/fuzz/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto nodes = flex::expand_hostlist(text);
  if (!nodes) {
    check(!nodes.error().what.empty(), "a refusal has a reason");
    return 0;
  }
  check(nodes->size() <= flex::kMaxHosts, "a list is not too long");
  // Names of digits only fold to "[9,12]", which expand_hostlist refuses; no VM has such a name.
  const auto is_number = [](const flex::NodeName& node) {
    return node.text.find_first_not_of("0123456789") == std::string::npos;
  };
  if (std::any_of(nodes->begin(), nodes->end(), is_number)) return 0;
  // Folding sorts; a few thousand names show what there is to see.
  if (nodes->size() > 4096) return 0;
  const std::string folded = flex::fold_hostlist(*nodes);
  auto again = flex::expand_hostlist(folded);
  check(again.has_value(), "a folded list can be expanded");
  check(flex::fold_hostlist(*again) == folded, "folding is stable");
  std::sort(nodes->begin(), nodes->end());
  std::sort(again->begin(), again->end());
  check(*again == *nodes, "a folded list has the same nodes");
  return 0;
}
