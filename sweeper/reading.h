// SPDX-License-Identifier: GPL-2.0-or-later
// What of a group is read again in a round (pure). The list of groups says which of them have
// changed; the lists of the others are those of an earlier round.
#pragma once

#include "lib/gce/cloud.h"
#include "sweeper/snapshot.h"

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace flex {

struct Reading {
  bool requests = false;
  bool instances = false;

  friend bool operator==(const Reading&, const Reading&) = default;
};

/// The record of the same group, which has not changed in size, in what its entries are about to
/// become, or in whether it is stable.
[[nodiscard]] bool is_unchanged(const Group& last, const Group& now);

/// `last` is null for a group that was not there the last time. One that is new, has changed or was
/// written to is read twice: Google's lists may lag behind the record.
[[nodiscard]] Reading what_to_read(const SweptGroup* last, const Group& now);

/// A request has come, gone or taken another state: the entries may have, too.
[[nodiscard]] bool have_changed(const std::vector<ResizeRequest>& last,
                                const std::vector<ResizeRequest>& now);

/// So many groups that nothing points to are read in a round that makes `calls` calls anyway: all
/// of them within some minutes where that is cheap, and a few in any case.
[[nodiscard]] std::size_t spare_readings(std::size_t groups, std::size_t calls);

/// A VM's place and name: "us-central1-a/n-1". Empty without a URL.
[[nodiscard]] std::string vm_key(const Instance& instance);

/// The zones of the group's VMs.
[[nodiscard]] std::set<std::string> zones_of(const SweptGroup& group);

using VmsByKey = std::unordered_map<std::string, Instance>;

/// The VMs of the zones' lists are those of the group's entries, in the same state.
[[nodiscard]] bool shows_same(const SweptGroup& group, const VmsByKey& vms);

/// A pattern that all of these names match, and few others; empty where it would be too long.
[[nodiscard]] std::string pattern_of(const std::set<std::string>& names);

}  // namespace flex
