// SPDX-License-Identifier: GPL-2.0-or-later
// Which request made the VM of a node (pure).
#pragma once

#include "sweeper/snapshot.h"

#include <map>
#include <utility>

namespace flex {

/// The newest request in the VM's group that was served, or is being served. Reads the snapshot
/// when it is first asked.
class VmOrigins {
 public:
  explicit VmOrigins(const Snapshot& shot) : shot_(shot) {}

  /// Null: none is listed any more.
  [[nodiscard]] const ResizeRequest* find(const SweptGroup& group, const NodeName& node);

 private:
  void read();

  const Snapshot& shot_;
  bool is_read_ = false;
  std::map<std::pair<const SweptGroup*, NodeName>, const ResizeRequest*> by_node_{};
};

}  // namespace flex
