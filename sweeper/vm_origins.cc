// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/vm_origins.h"

#include "lib/fleet/groups.h"

namespace flex {

const ResizeRequest* VmOrigins::find(const SweptGroup& group, const NodeName& node) {
  if (!is_read_) read();
  const auto found = by_node_.find({&group, node});
  return found == by_node_.end() ? nullptr : found->second;
}

void VmOrigins::read() {
  is_read_ = true;
  for (const SweptGroup& group : shot_.groups) {
    for (const ResizeRequest& request : group.requests) {
      const bool may_have_made = request.is_active() || request.state == RequestState::Succeeded;
      if (!may_have_made || !is_our_request(request)) continue;
      for (const NodeName& node : request.nodes) {
        const ResizeRequest*& newest = by_node_[{&group, node}];
        if (newest == nullptr || newest->created < request.created) newest = &request;
      }
    }
  }
}

}  // namespace flex
