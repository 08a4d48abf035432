// SPDX-License-Identifier: GPL-2.0-or-later
// node_note: a node's extra says when its VM ends, for the plugin on the node, and which nodeset
// and request it is of. Taken away when the VM is gone.
#include "lib/core/duration.h"
#include "lib/core/node_lease.h"
#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"
#include "sweeper/vm_origins.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace flex {

namespace {

/// At most so many different texts in one round: each is a call to slurmctld.
constexpr std::size_t kMostTexts = 250;

/// An end that moves by less is the same VM's.
constexpr Seconds kSameEnd{60};

bool is_same_vm(const NodeLease& said, const NodeLease& lease) {
  return said.nodeset == lease.nodeset && said.end > lease.end - kSameEnd &&
         said.end < lease.end + kSameEnd;
}

/// What is to be said of the node's VM, where that is not said yet.
std::optional<NodeLease> lease_to_note(const Round& round,
                                       const NodePicture& node,
                                       VmOrigins& origins) {
  NodeLease lease{.end = *node.entry->terminates, .nodeset = round.nodeset_of(node).name};
  const auto said = read_lease(node.node->extra);
  const bool is_known = said && is_same_vm(*said, lease);
  // A request is deleted long before its VMs end.
  if (is_known && !said->request.empty()) {
    lease.request = said->request;
  } else if (const ResizeRequest* request = origins.find(*node.entry.group, node.name)) {
    lease.request = request->name.text;
  }
  if (said == lease) return std::nullopt;
  return lease;
}

}  // namespace

void node_note(Round& round) {
  VmOrigins origins(round.shot);
  using Key = std::tuple<TimePoint, std::string, std::string>;
  std::map<Key, NoteLease> notes;
  std::vector<NodeName> gone;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr) continue;
    if (node.has_vm() && node.entry->terminates) {
      auto lease = lease_to_note(round, node, origins);
      if (!lease) continue;
      NoteLease& note = notes[{lease->end, lease->nodeset, lease->request}];
      note.nodes.push_back(node.name);
      note.lease = std::move(lease);
    } else if ((!node.entry || !node.entry->is_leaving()) && read_lease(node.node->extra)) {
      gone.push_back(node.name);  // what is said is of the VM before
    }
  }
  // Nodes that were taken out of the config.
  for (const Node& node : round.shot.nodes.items) {
    if (round.config.find(node.name) == nullptr && is_powered_down(node) && read_lease(node.extra))
      gone.push_back(node.name);
  }
  std::size_t count = 0;
  for (auto& [key, note] : notes) {
    if (++count > kMostTexts) break;
    std::string why = fmt::format("its VM ends {}", format_time(note.lease->end));
    round.add(Rule::NodeNote, std::move(why), std::move(note));
  }
  if (!gone.empty())
    round.add(Rule::NodeNote, "its VM is gone", NoteLease{.nodes = std::move(gone), .lease = {}});
}

}  // namespace flex
