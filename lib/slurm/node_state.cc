// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/node_state.h"

#include <slurm/slurm.h>

#include <array>
#include <string_view>
#include <utility>

namespace flex {
namespace {

std::uint32_t base(const Node& node) {
  return node.state & NODE_STATE_BASE;
}

bool has(const Node& node, std::uint64_t flag) {
  return (node.state & flag) != 0;
}

constexpr std::array<std::string_view, 7> kBases{
    "UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"};

using Flag = std::pair<std::uint64_t, std::string_view>;
constexpr std::array kFlags{
    Flag{NODE_STATE_CLOUD, "CLOUD"},
    Flag{NODE_STATE_DRAIN, "DRAIN"},
    Flag{NODE_STATE_COMPLETING, "COMPLETING"},
    Flag{NODE_STATE_NO_RESPOND, "NOT_RESPONDING"},
    Flag{NODE_STATE_FAIL, "FAIL"},
    Flag{NODE_STATE_POWERED_DOWN, "POWERED_DOWN"},
    Flag{NODE_STATE_POWERING_UP, "POWERING_UP"},
    Flag{NODE_STATE_POWERING_DOWN, "POWERING_DOWN"},
    Flag{NODE_STATE_POWER_UP, "POWER_UP"},
    Flag{NODE_STATE_POWER_DOWN, "POWER_DOWN"},
    Flag{NODE_STATE_MAINT, "MAINTENANCE"},
    Flag{NODE_STATE_RES, "RESERVED"},
    Flag{NODE_STATE_REBOOT_REQUESTED, "REBOOT_REQUESTED"},
    Flag{NODE_STATE_REBOOT_ISSUED, "REBOOT_ISSUED"},
    Flag{NODE_STATE_PLANNED, "PLANNED"},
    Flag{NODE_STATE_INVALID_REG, "INVALID_REG"},
    Flag{NODE_STATE_DYNAMIC_NORM, "DYNAMIC_NORM"},
};

}  // namespace

bool is_powering_up(const Node& node) {
  return has(node, NODE_STATE_POWERING_UP);
}

bool is_powered_down(const Node& node) {
  return has(node, NODE_STATE_POWERED_DOWN);
}

bool is_powering_down(const Node& node) {
  return has(node, NODE_STATE_POWERING_DOWN);
}

bool is_idle(const Node& node) {
  return base(node) == NODE_STATE_IDLE;
}

bool is_allocated(const Node& node) {
  return base(node) == NODE_STATE_ALLOCATED || base(node) == NODE_STATE_MIXED;
}

bool is_down(const Node& node) {
  return base(node) == NODE_STATE_DOWN;
}

bool is_draining(const Node& node) {
  return has(node, NODE_STATE_DRAIN);
}

bool is_not_responding(const Node& node) {
  return has(node, NODE_STATE_NO_RESPOND);
}

bool is_cloud(const Node& node) {
  return has(node, NODE_STATE_CLOUD);
}

bool is_completing(const Node& node) {
  return has(node, NODE_STATE_COMPLETING);
}

bool is_registration_refused(const Node& node) {
  return has(node, NODE_STATE_INVALID_REG);
}

bool is_rebooting(const Node& node) {
  return has(node, NODE_STATE_REBOOT_REQUESTED) || has(node, NODE_STATE_REBOOT_ISSUED);
}

bool is_power_up_requested(const Node& node) {
  return has(node, NODE_STATE_POWER_UP);
}

bool is_about_to_wake(const Node& node) {
  return is_power_up_requested(node) && is_powered_down(node) && !is_powering_down(node);
}

bool is_power_down_requested(const Node& node) {
  return has(node, NODE_STATE_POWER_DOWN);
}

bool is_up(const Node& node) {
  if (base(node) == NODE_STATE_UNKNOWN || base(node) == NODE_STATE_FUTURE) return false;
  return !is_powered_down(node) && !is_powering_down(node) && !is_powering_up(node);
}

bool is_unusable(const Node& node) {
  return is_cloud(node) && is_idle(node) && is_powered_down(node) && is_not_responding(node) &&
         !is_draining(node) && !is_completing(node) && !is_powering_down(node) &&
         !is_powering_up(node) && !is_power_up_requested(node) && !is_power_down_requested(node);
}

std::string state_text(const Node& node) {
  const auto number = base(node);
  std::string text{number < kBases.size() ? kBases[number] : "?"};
  for (const auto& [flag, name] : kFlags) {
    if (has(node, flag)) (text += '+') += name;
  }
  return text;
}

}  // namespace flex
