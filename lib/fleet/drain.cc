// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/drain.h"

#include "lib/core/job_note.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/node_state.h"

#include <algorithm>
#include <array>
#include <string>

namespace flex {

namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// Whether `text` has `part` in it, in any case.
bool mentions(std::string_view text, std::string_view part) {
  const auto is_same = [](char left, char right) { return lower(left) == lower(right); };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
}

/// Reasons of slurmctld's own, in the releases from 22.05 to 26.05. It drains for these,
constexpr std::array<std::string_view, 4> kDrainsOfSlurmctld{
    "POWER_DOWN_ASAP", "Reboot ASAP", "reboot issued", "reboot complete"};
/// and sets nodes DOWN for those.
constexpr std::array<std::string_view, 4> kDownsOfSlurmctld{
    "Not responding", "ResumeTimeout reached", "Node unexpectedly rebooted", "reboot timed out"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& all, std::string_view text) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

bool is_repair_reason(const NodesetConfig& nodeset, std::string_view reason) {
  return nodeset.max_repairs != 0 &&
         std::any_of(nodeset.repair_reasons.begin(),
                     nodeset.repair_reasons.end(),
                     [&](const std::string& part) { return mentions(reason, part); });
}

/// DRAIN would send the job that waits for the node back to the queue.
bool would_cost_job(const Node& node) {
  return is_allocated(node) && (is_powered_down(node) || is_powering_up(node));
}

/// Of a node that is no longer drained: a power-down has done it, no admin.
bool is_drain_lost(const Node& node, LastLook last) {
  if (last == LastLook::Lost) return true;
  if (node.reason.empty())
    return last == LastLook::DrainedAndUp && (is_powering_up(node) || would_cost_job(node));
  return !is_allocated(node) || would_cost_job(node);
}

/// DOWN without a reason: a power-up that was carried out after an admin's DOWN has taken it
/// (before 23.11). An admin's RESUME would have ended the DOWN.
bool has_lost_reason(const Node& node) {
  return is_down(node) && !is_draining(node) && node.reason.empty();
}

}  // namespace

bool is_to_repair(const NodesetConfig& nodeset, const Node& node) {
  // What we have written ourselves may quote such a reason.
  return is_draining(node) && !node.reason.starts_with(kNotePrefix) &&
         is_repair_reason(nodeset, node.reason);
}

bool is_slurmctlds_reason(std::string_view reason) {
  // From 23.02 on slurmctld puts its own reason behind the one that is there.
  constexpr std::string_view kJoint = " : ";
  if (const std::size_t joint = reason.rfind(kJoint); joint != std::string_view::npos)
    reason.remove_prefix(joint + kJoint.size());
  return is_one_of(kDrainsOfSlurmctld, reason) || is_one_of(kDownsOfSlurmctld, reason);
}

bool is_set_aside(const NodesetConfig& nodeset, const Node& node) {
  if (node.reason.empty() || is_registration_refused(node) || is_rebooting(node)) return false;
  if (node.reason.starts_with(kNotePrefix))
    return is_draining(node) && node.reason.starts_with(kGaveUp);
  if (is_repair_reason(nodeset, node.reason)) return false;
  if (is_draining(node)) return !is_one_of(kDrainsOfSlurmctld, node.reason);
  return is_down(node) && !is_slurmctlds_reason(node.reason);
}

DrainCare care_for_drain(const NodesetConfig& nodeset,
                         const Node& node,
                         const std::optional<std::string>& remembered,
                         LastLook last) {
  if (is_set_aside(nodeset, node)) {
    // What slurmctld writes over an admin's reason, "Not responding", says less than that.
    const bool is_known =
        remembered && (*remembered == node.reason || is_slurmctlds_reason(node.reason));
    return is_known ? DrainCare::Nothing : DrainCare::Remember;
  }
  if (!remembered || is_registration_refused(node)) return DrainCare::Nothing;
  if (has_lost_reason(node))
    return is_power_down_requested(node) ? DrainCare::Nothing : DrainCare::Restore;
  // While a power-down is still to come the drain is still there, or an admin has taken it away.
  if (is_power_down_requested(node))
    return is_draining(node) || !node.reason.empty() ? DrainCare::Nothing : DrainCare::Forget;
  if (is_draining(node)) {
    // A pause's drain ends with the pause, an admin's does not. What else drains the node beside
    // the admin, a repair or the end of a lease, comes first.
    const bool is_hidden = node.reason.empty() || is_stop_drained(node, nodeset.name);
    return is_hidden ? DrainCare::Restore : DrainCare::Nothing;
  }
  if (!is_drain_lost(node, last)) return DrainCare::Forget;
  return would_cost_job(node) ? DrainCare::Wait : DrainCare::Restore;
}

}  // namespace flex
