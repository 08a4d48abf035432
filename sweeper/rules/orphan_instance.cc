// SPDX-License-Identifier: GPL-2.0-or-later
// orphan_instance: a VM, or an entry without one, in a group of ours that no powered-up node wants:
// flex-suspend died, a cancelled request was served at the last moment. Seen twice and for
// orphan_grace: deleted.
#include "sweeper/rules.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_set>

namespace flex {

namespace {

/// Why nobody wants it; empty: it is wanted, or something else takes care of it.
std::string why_unwanted(const Round& round, const SweptGroup& group, const Instance& instance) {
  const NodePicture* node = round.picture.find(instance.name);
  if (node == nullptr)
    return round.picture.is_in_use_elsewhere(instance.name) ? ""
                                                            : "no nodeset has a node of this name";
  if (node->node == nullptr) return "slurmctld knows no node of this name";
  if (!node->wants_vm()) {
    return instance.is_dead() ? "an entry without a VM, and its node is powered down"
                              : "its node is powered down";
  }
  // Of two entries of one name, the one without a VM is in the way.
  // Where it has the VM's own URL, deleting it might mean the VM.
  if (instance.is_dead() && node->has_vm() && node->entry.group != &group &&
      instance.url != node->entry->url)
    return "an entry without a VM, and the node's VM is in another group";
  // It was there when the node was off: slurmctld does not take the registration of a VM that
  // booted before the node's power-up.
  const bool is_old =
      !instance.id.empty() && !instance.is_queued() && node->is_coming_up() &&
      round.memory.find(to_string(Rule::OrphanInstance), key_of(group, instance)) != nullptr;
  return is_old ? "it is from before its node was powered up" : "";
}

}  // namespace

void orphan_instance(Round& round) {
  for (const SweptGroup& group : round.shot.groups) {
    std::unordered_set<NodeName> requested;
    for (const ResizeRequest& request : group.requests) {
      if (request.is_active()) requested.insert(request.nodes.begin(), request.nodes.end());
    }
    std::map<std::string, std::vector<Instance>> doomed;
    for (const Instance& instance : group.instances) {
      // What a request has queued goes with the request.
      const NodePicture* node = round.picture.find(instance.name);
      const bool is_requested = instance.is_queued() && (requested.contains(instance.name) ||
                                                         (node != nullptr && node->request));
      if (instance.is_leaving() || is_requested) continue;
      const std::string why = why_unwanted(round, group, instance);
      if (why.empty()) continue;
      const Sighting& seen = round.see(Rule::OrphanInstance, key_of(group, instance));
      if (!seen.is_twice() || seen.age() < round.config.sweeper.orphan_grace) continue;
      round.claim(instance.name);
      doomed[why].push_back(instance);
    }
    for (const auto& [why, instances] : doomed)
      delete_instances(round, Rule::OrphanInstance, why, group.group.name, instances, false);
  }
}

}  // namespace flex
