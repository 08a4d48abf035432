// SPDX-License-Identifier: GPL-2.0-or-later
// refused_registration, of rule boot_timeout: slurmd has registered, and slurmctld does not take
// it: slurm.conf promises more memory, CPUs or GPUs than the VM has (INVALID_REG, with a drain).
// The next VM of this kind fails in the same way. So it is a failed boot: the VM goes, its serial
// log stays, and after max_boot_failures in a row the nodeset is stopped. A node that slurmctld had
// taken before is an admin's matter: somebody has changed slurm.conf under it.
#include "lib/core/job_note.h"
#include "lib/fleet/pause.h"
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace flex {

namespace {

/// Nodes of a nodeset that slurmctld has refused for the same reason.
struct Refused {
  std::vector<const NodePicture*> nodes{};
  bool is_new = false;  ///< one of them was not seen so in an earlier round

  [[nodiscard]] std::vector<NodeName> names() const {
    std::vector<NodeName> names;
    for (const NodePicture* node : nodes) names.push_back(node->name);
    return names;
  }
};

using Reason = std::pair<std::size_t, std::string>;  ///< nodeset, and what slurmctld says

/// A job runs on it, so it has come up.
bool is_at_work(const NodePicture& node) {
  return std::any_of(node.jobs.begin(), node.jobs.end(), [](const Job* job) {
    return job->is_running && !job->is_configuring;
  });
}

/// Keeps who a node comes up for, and which of its VMs slurmctld has taken. Whether it has refused
/// the VM that the node has now.
bool is_refused(Round& round, const NodePicture& node) {
  if (!node.wants_vm()) return false;
  Boot& boot = round.memory.boots[node.name];
  const bool is_bad = is_registration_refused(*node.node) && is_draining(*node.node);
  if (node.is_coming_up() && !node.jobs.empty()) {
    boot.jobs.clear();
    for (const Job* job : node.jobs) boot.jobs.push_back(job->id);
  }
  if (node.is_coming_up() && !is_bad) return false;
  if (!node.has_vm() || node.entry->id.empty()) return false;
  // After a loss of memory nobody knows what was before: it is left alone.
  const bool is_first_look = round.memory.last_round == TimePoint{};
  if (!is_bad || is_first_look || is_at_work(node)) boot.vm = node.entry->id;
  return boot.vm != node.entry->id;
}

std::map<Reason, Refused> find_refused(Round& round) {
  std::map<Reason, Refused> refused;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!is_refused(round, node) || !round.is_free(node.name)) continue;
    Refused& found = refused[{node.nodeset, node.node->reason}];
    found.nodes.push_back(&node);
    const Sighting& seen = round.see(Rule::BootTimeout, vm_key(node) + " refused");
    found.is_new = found.is_new || !seen.is_twice();
    // unhealthy_node would take it for broken hardware.
    round.claim(node.name);
  }
  return refused;
}

/// The ids of all VMs that the nodeset has.
std::set<std::string> vms_of(const Round& round, std::size_t nodeset) {
  std::set<std::string> vms;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.nodeset == nodeset && node.has_vm()) vms.insert(node.entry->id);
  }
  return vms;
}

/// Each VM that came after the last refusal was counted is one more failure. VMs that come together
/// are refused together: they are one.
void count(Round& round, std::size_t nodeset, const Refused& refused) {
  BootFailures& failures = round.memory.boot_failures[round.config.nodesets[nodeset].name];
  for (const NodePicture* node : refused.nodes) {
    failures.refused.insert(node->name);
    if (failures.counted.contains(node->entry->id)) continue;
    ++failures.count;
    failures.last = round.shot.now;
    failures.counted = vms_of(round, nodeset);
  }
}

/// The jobs that the nodes came up for: slurmctld has put them back in its queue.
std::vector<const Job*> jobs_of(const Round& round, const Refused& refused) {
  std::vector<const Job*> jobs;
  std::set<JobId> seen;
  for (const NodePicture* node : refused.nodes) {
    const auto boot = round.memory.boots.find(node->name);
    if (boot == round.memory.boots.end()) continue;
    for (const JobId id : boot->second.jobs) {
      const Job* const job = round.picture.find_job(id);
      if (job != nullptr && !job->is_finished && seen.insert(id).second) jobs.push_back(job);
    }
  }
  return jobs;
}

/// What is wrong, and which line of slurm.conf says so.
std::string complaint_about(const std::string& reason, const Refused& refused) {
  return fmt::format("slurmctld refuses the registration of {}: {}",
                     fold_hostlist(refused.names()),
                     with_remedy(reason, fold_hostlist(refused.names())));
}

/// One more failure: its jobs are told, and after the last one the nodeset is stopped.
void tell_and_stop(Round& round,
                   const NodesetConfig& nodeset,
                   const Refused& refused,
                   const std::string& complaint) {
  const BootFailures& failures = round.memory.boot_failures[nodeset.name];
  const bool is_last = failures.count >= nodeset.max_boot_failures;
  if (is_last && !round.memory.stopped.contains(nodeset.name))
    round.memory.stopped[nodeset.name] = {
        .why = fmt::format("{} boots in a row failed: {}", failures.count, complaint),
        .drained = {}};
  const auto stopped = round.memory.stopped.find(nodeset.name);
  for (const Job* job : jobs_of(round, refused)) {
    const bool is_requeued = job->is_batch && job->may_requeue;
    tell(round,
         Rule::BootTimeout,
         complaint,
         *job,
         stopped != round.memory.stopped.end() ? note_stopped(nodeset.name, stopped->second.why)
                                               : note_boot_refused(complaint, is_requeued));
  }
}

/// Deletes the VMs that were seen so twice, and makes their nodes whole again.
void replace(Round& round,
             const NodesetConfig& nodeset,
             const Refused& refused,
             const std::string& complaint) {
  std::map<MigName, std::vector<Instance>> doomed;
  std::vector<NodeName> nodes;
  for (const NodePicture* node : refused.nodes) {
    const Sighting& seen = round.see(Rule::BootTimeout, vm_key(*node) + " refused");
    if (!seen.is_twice() || is_power_down_requested(*node->node)) continue;
    doomed[node->entry.group->group.name].push_back(*node->entry);
    nodes.push_back(node->name);
  }
  if (nodes.empty()) return;
  const std::string why = fmt::format("{} (failure {} of {} in a row)",
                                      complaint,
                                      round.memory.boot_failures[nodeset.name].count,
                                      nodeset.max_boot_failures);
  std::size_t deleted = 0;
  for (const auto& [group, instances] : doomed)
    deleted += delete_instances(round, Rule::BootTimeout, why, group, instances, true);
  if (deleted < nodes.size()) return;
  const auto stopped = round.memory.stopped.find(nodeset.name);
  round.add(Rule::BootTimeout,
            why,
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(nodes),
                        .reason = stopped == round.memory.stopped.end()
                                      ? fmt::format("{}{}", kNotePrefix, complaint)
                                      : stop_mark(nodeset.name) + stopped->second.why});
}

}  // namespace

void refused_registration(Round& round) {
  std::erase_if(round.memory.boots, [&](const auto& entry) {
    const NodePicture* const node = round.picture.find(entry.first);
    return node == nullptr || !node->wants_vm();
  });
  for (const auto& [key, refused] : find_refused(round)) {
    const auto& [index, reason] = key;
    const NodesetConfig& nodeset = round.config.nodesets[index];
    const std::string complaint = complaint_about(reason, refused);
    count(round, index, refused);
    if (refused.is_new) tell_and_stop(round, nodeset, refused, complaint);
    replace(round, nodeset, refused, complaint);
  }
}

void note_boots(Round& round, const NodesetConfig& nodeset, const std::vector<NodeName>& booted) {
  const auto found = round.memory.boot_failures.find(nodeset.name);
  if (found == round.memory.boot_failures.end()) return;
  std::set<NodeName>& refused = found->second.refused;
  for (const NodeName& name : booted) refused.erase(name);
  std::erase_if(refused, [&](const NodeName& name) { return round.config.find(name) == nullptr; });
  // A node that is never used again would keep the count for ever.
  constexpr Seconds kDay{24 * 3600};
  if (round.shot.now - found->second.last >= kDay) refused.clear();
  if (refused.empty()) round.memory.boot_failures.erase(found);
}

}  // namespace flex
