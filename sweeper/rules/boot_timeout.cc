// SPDX-License-Identifier: GPL-2.0-or-later
// boot_timeout: a VM runs, but its node has not registered in boot_timeout. Keep the VM's serial
// log, delete it, and let unrequested_node ask again. After max_boot_failures in a row the nodeset
// is stopped (stopped_nodeset.cc). One that registers and is refused: refused_registration.cc.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex {

namespace {

/// The VMs of a nodeset that have had their time.
struct Failures {
  std::map<MigName, std::vector<Instance>> doomed{};
  std::vector<NodeName> nodes{};
  std::vector<NodeName> booted{};  ///< that have come up since the last round
};

/// It comes up for the first time on the VM that it has. A drained one may have registered wrongly.
bool has_booted(const Round& round, const NodePicture& node) {
  if (is_draining(*node.node) || is_registration_refused(*node.node)) return false;
  if (round.memory.find(to_string(Rule::BootTimeout), vm_key(node)) != nullptr) return true;
  // Too fast to be seen booting.
  const auto failures = round.memory.boot_failures.find(round.nodeset_of(node).name);
  return failures != round.memory.boot_failures.end() &&
         failures->second.refused.contains(node.name);
}

std::map<std::size_t, Failures> find_failures(Round& round) {
  std::map<std::size_t, Failures> failures;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !node.has_vm()) continue;
    const NodesetConfig& nodeset = round.nodeset_of(node);
    if (is_up(*node.node)) {
      if (has_booted(round, node)) failures[node.nodeset].booted.push_back(node.name);
      continue;
    }
    if (!is_powering_up(*node.node)) continue;
    const Sighting& seen = round.see(Rule::BootTimeout, vm_key(node));
    // One that Google has not even started yet has as much time again.
    const bool is_running = node.entry->status == InstanceStatus::Running;
    const Seconds limit = nodeset.boot_timeout * (is_running ? 1 : 2);
    if (!seen.is_twice() || seen.age() < limit || !round.is_free(node.name)) continue;
    Failures& failed = failures[node.nodeset];
    failed.doomed[node.entry.group->group.name].push_back(*node.entry);
    failed.nodes.push_back(node.name);
  }
  return failures;
}

/// Jobs that wait for the failed nodes go back to the queue: nobody asks for the nodes now.
void stop(Round& round, const NodesetConfig& nodeset, const std::vector<NodeName>& failed) {
  const std::string why =
      fmt::format("{} boots in a row failed", round.memory.boot_failures[nodeset.name].count);
  round.memory.stopped[nodeset.name] = {.why = why, .drained = {}};
  for (const Job* job : jobs_on(round.picture, failed))
    tell(round, Rule::BootTimeout, why, *job, note_stopped(nodeset.name, why));
  round.add(Rule::BootTimeout,
            fmt::format("nodeset {} is stopped: {}", nodeset.name, why),
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = failed,
                        .reason = stop_mark(nodeset.name) + why});
}

/// Deletes them. VMs that fail within one boot_timeout of each other are one failure: the next VM
/// cannot have had its time yet.
void replace(Round& round, const NodesetConfig& nodeset, const Failures& failed) {
  round.claim(failed.nodes);
  const auto known = round.memory.boot_failures.find(nodeset.name);
  BootFailures failures =
      known == round.memory.boot_failures.end() ? BootFailures{} : known->second;
  const bool is_news =
      failures.count == 0 || round.shot.now - failures.last >= nodeset.boot_timeout;
  if (is_news) ++failures.count;
  const std::string why =
      fmt::format("runs for {}, but slurmd has not registered (failure {} of {} in a row)",
                  format_slurm_time(nodeset.boot_timeout),
                  failures.count,
                  nodeset.max_boot_failures);
  std::size_t deleted = 0;
  for (const auto& [group, doomed] : failed.doomed)
    deleted += delete_instances(round, Rule::BootTimeout, why, group, doomed, true);
  if (deleted == 0 || !is_news) return;
  failures.last = round.shot.now;
  round.memory.boot_failures[nodeset.name] = failures;
  if (failures.count >= nodeset.max_boot_failures && !round.memory.stopped.contains(nodeset.name))
    stop(round, nodeset, failed.nodes);
}

}  // namespace

void boot_timeout(Round& round) {
  watch_stopped(round);
  for (const auto& [index, failed] : find_failures(round)) {
    const NodesetConfig& nodeset = round.config.nodesets[index];
    if (!failed.booted.empty()) note_boots(round, nodeset, failed.booted);
    if (!failed.nodes.empty()) replace(round, nodeset, failed);
  }
}

}  // namespace flex
