// SPDX-License-Identifier: GPL-2.0-or-later
#include "plugin/earliest.h"

namespace flex::plugin {

std::optional<NodeLease> earliest(const std::vector<NodeLease>& leases, TimePoint now) {
  std::optional<NodeLease> first;
  for (const NodeLease& lease : leases) {
    if (lease.end > now && (!first || lease.end < first->end)) first = lease;
  }
  return first;
}

std::string to_line(const std::optional<NodeLease>& lease) {
  return lease ? write_lease(*lease) : "none";
}

std::optional<NodeLease> from_line(std::string_view line, TimePoint now) {
  auto lease = read_lease(line);
  if (!lease || lease->end <= now) return std::nullopt;
  return lease;
}

}  // namespace flex::plugin
