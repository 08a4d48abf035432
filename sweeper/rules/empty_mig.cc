// SPDX-License-Identifier: GPL-2.0-or-later
// empty_mig: a group of ours with nothing in it, for empty_mig_grace, and nobody about to use it.
#include "lib/fleet/routes.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <algorithm>
#include <set>
#include <string>

namespace flex {

namespace {

/// A group that has a size but nothing in it is waited for so many times longer.
constexpr int kPatience = 6;

/// The job of a job's own group; 0 for a nodeset's.
JobId group_job(const Group& group) {
  return described_number(group.description, "job");
}

bool is_about_to_need(const NodePicture& node) {
  return node.is_coming_up() ||
         (node.node != nullptr && is_powered_down(*node.node) && !node.jobs.empty());
}

/// The nodesets, and the jobs, that may ask for VMs at any moment.
struct Demanding {
  std::set<std::string> nodesets{};
  std::set<JobId> jobs{};
};

Demanding find_demanding(const Round& round) {
  Demanding found;
  for (const NodePicture& node : round.picture.nodes()) {
    if (!is_about_to_need(node)) continue;
    found.nodesets.insert(round.nodeset_of(node).name);
    for (const Job* job : node.jobs) found.jobs.insert(job->id);
  }
  return found;
}

bool is_empty(const SweptGroup& group) {
  return group.instances.empty() &&
         std::none_of(group.requests.begin(),
                      group.requests.end(),
                      [](const ResizeRequest& request) { return request.is_active(); });
}

/// Made for zones, a template or a mode that its nodeset does not have any more.
bool has_been_left(const Config& config, const SweptGroup& group) {
  const auto nodeset =
      std::find_if(config.nodesets.begin(), config.nodesets.end(), [&](const NodesetConfig& one) {
        return one.name == group.nodeset;
      });
  return nodeset == config.nodesets.end() || is_outdated(group.group, *nodeset);
}

}  // namespace

void empty_mig(Round& round) {
  const Demanding demanding = find_demanding(round);
  for (const SweptGroup& group : round.shot.groups) {
    if (group.group.kind == GroupKind::Loose || !is_empty(group)) continue;
    const JobId job = group_job(group.group);
    const bool is_needed =
        job != 0 ? demanding.jobs.contains(job) : demanding.nodesets.contains(group.nodeset);
    // What the config no longer speaks of is used by nobody, however busy the nodeset is.
    if (is_needed && !has_been_left(round.config, group)) continue;
    const Sighting& seen = round.see(Rule::EmptyMig, key_of(group.group));
    // Whether Google lowers the size at the end of a lease is not written anywhere.
    const int patience = group.group.target_size == 0 ? 1 : kPatience;
    if (!seen.is_twice() || seen.age() < patience * round.config.sweeper.empty_mig_grace) continue;
    if (round.spend(1) == 0) return;
    round.add(Rule::EmptyMig,
              "empty, and nobody is about to use it",
              DeleteGroup{.group = group.group.name});
  }
}

}  // namespace flex
