// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/drain.h"

#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"

#include <algorithm>
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

}  // namespace

bool is_to_repair(const NodesetConfig& nodeset, const Node& node) {
  if (!is_draining(node) || nodeset.max_repairs == 0) return false;
  // What we have written ourselves may quote such a reason.
  if (node.reason.starts_with(kNotePrefix)) return false;
  return std::any_of(nodeset.repair_reasons.begin(),
                     nodeset.repair_reasons.end(),
                     [&](const std::string& part) { return mentions(node.reason, part); });
}

bool is_set_aside(const NodesetConfig& nodeset, const Node& node) {
  const bool is_foreign = !node.reason.empty() && !node.reason.starts_with(kNotePrefix);
  const bool is_meant = is_foreign || node.reason.starts_with(kGaveUp);
  return is_meant && is_draining(node) && !is_registration_refused(node) &&
         !is_to_repair(nodeset, node);
}

}  // namespace flex
