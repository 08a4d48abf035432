// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/words.h"

#include "lib/slurm/node_state.h"

namespace flex {

std::string_view node_word(const NodePicture& node) {
  if (node.node == nullptr) return "unknown";
  if (is_powering_down(*node.node)) return "powering_down";
  if (node.is_coming_up()) return node.has_vm() ? "booting" : "waiting";
  if (is_draining(*node.node) && (is_powered_down(*node.node) || !is_down(*node.node)))
    return is_allocated(*node.node) || is_completing(*node.node) ? "draining" : "drained";
  if (is_unusable(*node.node)) return "unusable";
  if (is_powered_down(*node.node)) return "powered_down";
  if (is_down(*node.node)) return "down";
  return is_allocated(*node.node) ? "allocated" : "idle";
}

std::string_view vm_word(const Instance& instance, const NodePicture* node) {
  if (instance.is_leaving()) return "leaving";
  if (instance.is_dead()) return "dead";
  const bool is_coming = node != nullptr && node->is_coming_up();
  return is_coming || instance.status != InstanceStatus::Running ? "booting" : "up";
}

std::string_view request_word(RequestState state) {
  switch (state) {
    case RequestState::Creating:
      return "CREATING";
    case RequestState::Accepted:
      return "ACCEPTED";
    case RequestState::Provisioning:
      return "PROVISIONING";
    case RequestState::Succeeded:
      return "SUCCEEDED";
    case RequestState::Failed:
      return "FAILED";
    case RequestState::Cancelled:
      return "CANCELLED";
    case RequestState::Deleting:
      return "DELETING";
    case RequestState::Unknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace flex
