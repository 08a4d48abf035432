// SPDX-License-Identifier: GPL-2.0-or-later
// boot_timeout: a VM runs, but its node has not registered in boot_timeout. Keep the VM's serial
// log, delete it, and let unrequested_node ask again. After max_boot_failures in a row the nodeset
// is stopped: its free nodes are drained, which Slurm's users see, until an admin undrains one.
#include "lib/core/duration.h"
#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace flex {

namespace {

std::string stop_mark(const NodesetConfig& nodeset) {
  return fmt::format("flex: nodeset {} stopped: ", nodeset.name);
}

bool is_drained_by_us(const NodePicture& node, const NodesetConfig& nodeset) {
  return node.node != nullptr && is_draining(*node.node) &&
         node.node->reason.rfind(stop_mark(nodeset), 0) == 0;
}

/// The VMs of a nodeset that have had their time.
struct Failures {
  std::map<MigName, std::vector<Instance>> doomed{};
  std::vector<NodeName> nodes{};
  bool has_success = false;
};

std::string boot_key(const NodePicture& node) {
  return node.name.text + " " + node.entry->id;
}

std::map<std::size_t, Failures> find_failures(Round& round) {
  std::map<std::size_t, Failures> failures;
  for (const NodePicture& node : round.picture.nodes()) {
    if (node.node == nullptr || !node.has_vm()) continue;
    const NodesetConfig& nodeset = round.nodeset_of(node);
    if (is_up(*node.node)) {
      // It was booting in the last round and has made it; a drained one may have registered
      // wrongly.
      if (is_draining(*node.node)) continue;
      if (round.memory.find(to_string(Rule::BootTimeout), boot_key(node)) != nullptr)
        failures[node.nodeset].has_success = true;
      continue;
    }
    if (!is_powering_up(*node.node)) continue;
    const Sighting& seen = round.see(Rule::BootTimeout, boot_key(node));
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
  round.memory.stopped[nodeset.name] = {.why = why, .drained = {}, .is_clearing = false};
  for (const Job* job : jobs_on(round.picture, failed))
    tell(round, Rule::BootTimeout, why, *job, note_stopped(nodeset.name, why));
  round.add(Rule::BootTimeout,
            fmt::format("nodeset {} is stopped: {}", nodeset.name, why),
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = failed,
                        .reason = stop_mark(nodeset) + why});
}

/// True if an admin has cleared the stop.
bool is_cleared(const Round& round, const Stopped& stopped) {
  return std::any_of(stopped.drained.begin(), stopped.drained.end(), [&](const NodeName& name) {
    const NodePicture* node = round.picture.find(name);
    return node != nullptr && node->node != nullptr && !is_draining(*node->node);
  });
}

/// Undrains the rest. Over only when none is drained by us any more: an undrain that was not
/// carried out must not stop the nodeset again.
void start_again(Round& round, const NodesetConfig& nodeset) {
  std::vector<NodeName> drained;
  for (const NodeName& name : nodeset.nodes) {
    const NodePicture& node = *round.picture.find(name);
    if (is_drained_by_us(node, nodeset)) drained.push_back(name);
  }
  round.memory.boot_failures.erase(nodeset.name);
  if (drained.empty()) {
    round.memory.stopped.erase(nodeset.name);
    return;
  }
  round.memory.stopped[nodeset.name].is_clearing = true;
  round.claim(drained);
  round.add(
      Rule::BootTimeout,
      fmt::format("nodeset {} was cleared by an admin", nodeset.name),
      UpdateNodes{.request = NodeRequest::Undrain, .nodes = std::move(drained), .reason = {}});
}

/// Keeps a stopped nodeset stopped: drains what has become free, gives back what waits for nothing.
void hold_stopped(Round& round, const NodesetConfig& nodeset, Stopped& stopped) {
  std::vector<NodeName> to_drain;
  std::vector<NodeName> waiting;
  for (const NodeName& name : nodeset.nodes) {
    const NodePicture& node = *round.picture.find(name);
    if (node.node == nullptr || !round.is_free(name)) continue;
    if (is_drained_by_us(node, nodeset)) stopped.drained.insert(name);
    const bool is_off = is_powered_down(*node.node) && is_idle(*node.node) &&
                        !is_power_up_requested(*node.node) && node.jobs.empty();
    if (is_off && !is_draining(*node.node)) to_drain.push_back(name);
    if (is_unserved(node)) waiting.push_back(name);
  }
  const std::string reason =
      fmt::format("{}{}; mend it, then: scontrol update NodeName={} State=UNDRAIN",
                  stop_mark(nodeset),
                  stopped.why,
                  nodeset.nodes.front());
  if (!to_drain.empty()) {
    round.claim(to_drain);
    round.add(
        Rule::BootTimeout,
        fmt::format("nodeset {} is stopped: {}", nodeset.name, stopped.why),
        UpdateNodes{.request = NodeRequest::Drain, .nodes = std::move(to_drain), .reason = reason});
  }
  if (waiting.empty()) return;
  round.claim(waiting);
  for (const Job* job : jobs_on(round.picture, waiting))
    tell(round, Rule::BootTimeout, stopped.why, *job, note_stopped(nodeset.name, stopped.why));
  round.add(Rule::BootTimeout,
            fmt::format("nodeset {} is stopped and nothing is asked for", nodeset.name),
            UpdateNodes{.request = NodeRequest::PowerDownForce,
                        .nodes = std::move(waiting),
                        .reason = stop_mark(nodeset) + stopped.why});
}

void watch_stopped(Round& round) {
  for (const NodesetConfig& nodeset : round.config.nodesets) {
    const auto found = round.memory.stopped.find(nodeset.name);
    if (found == round.memory.stopped.end()) continue;
    if (found->second.is_clearing || is_cleared(round, found->second))
      start_again(round, nodeset);
    else
      hold_stopped(round, nodeset, found->second);
  }
}

/// After a loss of memory: what we drained says so itself.
void remember_stopped(Round& round) {
  for (const NodePicture& node : round.picture.nodes()) {
    const NodesetConfig& nodeset = round.nodeset_of(node);
    if (!is_drained_by_us(node, nodeset) || round.memory.stopped.contains(nodeset.name)) continue;
    round.memory.stopped[nodeset.name] = {
        .why = "boots failed", .drained = {node.name}, .is_clearing = false};
  }
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
  remember_stopped(round);
  watch_stopped(round);
  for (const auto& [index, failed] : find_failures(round)) {
    const NodesetConfig& nodeset = round.config.nodesets[index];
    if (failed.has_success) round.memory.boot_failures.erase(nodeset.name);
    if (!failed.nodes.empty()) replace(round, nodeset, failed);
  }
}

}  // namespace flex
