// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/observe.h"

#include "lib/slurm/node_state.h"
#include "sweeper/cloud_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

void tell(const Progress& progress, const std::string& doing) {
  if (progress) progress(doing);
}

/// Off, free, and nobody has asked for anything else: from here only what slurmctld counts as a
/// change leads on (a job gets the node, an admin asks for something).
bool is_dark(const Node& node) {
  return is_idle(node) && is_powered_down(node) && !is_powering_down(node) &&
         !is_powering_up(node) && !is_power_up_requested(node) && !is_power_down_requested(node) &&
         !is_completing(node);
}

/// Before 24.05 power saving changes a node's state and does not count it as a change: it wakes a
/// node that a job or an admin wants, takes down one that is idle or that somebody wants down, and
/// calls it off after SuspendTimeout. Each of these begins at a node that is not dark. Whatever the
/// release, the Scheduler asks for everything once a minute.
bool may_change_unseen(const Snapshot& shot) {
  constexpr std::string_view kFirstGood = "24.05";
  if (std::string_view(shot.settings.version) >= kFirstGood) return false;
  return std::any_of(shot.nodes.items.begin(), shot.nodes.items.end(), [](const Node& node) {
    return is_cloud(node) && !is_dark(node);
  });
}

}  // namespace

Result<Done> observe_slurm(Scheduler& scheduler, Snapshot& shot, const Progress& progress) {
  if (may_change_unseen(shot)) shot.nodes.as_of = {};
  tell(progress, "nodes at slurmctld");
  if (auto done = scheduler.refresh_nodes(shot.nodes); !done) return done.error();
  tell(progress, fmt::format("jobs at slurmctld ({} nodes)", shot.nodes.items.size()));
  if (auto done = scheduler.refresh_jobs(shot.jobs); !done) return done.error();
  tell(progress,
       fmt::format("reservations and partitions at slurmctld ({} jobs)", shot.jobs.items.size()));
  if (auto done = scheduler.refresh_reservations(shot.reservations); !done) return done.error();
  auto partitions = scheduler.refresh_partitions(shot.partitions);
  if (!partitions) return partitions.error();
  // A reconfigured slurmctld sends its partitions again.
  if (!*partitions && !shot.settings.version.empty()) return Done{};
  auto settings = scheduler.load_settings();
  if (!settings) return settings.error();
  shot.settings = std::move(*settings);
  return Done{};
}

Result<Done> observe(Cloud& cloud,
                     Scheduler& scheduler,
                     const Config& config,
                     TimePoint now,
                     Snapshot& shot,
                     const Progress& progress) {
  shot.now = now;
  if (auto seen = look_at_cloud(cloud, config, shot, progress); !seen)
    return seen.error().in("Compute Engine");
  if (auto seen = observe_slurm(scheduler, shot, progress); !seen)
    return seen.error().in("slurmctld");
  if (shot.nodes.items.empty() && !config.nodesets.empty())
    return Error{ErrorKind::Retry,
                 "slurmctld shows no nodes at all: Slurm before 23.02 needs PrivateData=cloud"};
  return Done{};
}

void observe_accounting(Scheduler& scheduler, Snapshot& shot) {
  shot.accounting.reset();
  if (!shot.settings.enforced.associations) return;
  std::set<std::string> users;
  for (const Job& job : shot.jobs.items) {
    if (job.is_configuring && job.holds_nodes()) users.insert(job.user);
  }
  if (users.empty()) return;
  if (users.contains("")) users.clear();
  auto loaded = scheduler.load_accounting(std::vector<std::string>(users.begin(), users.end()));
  if (loaded) shot.accounting = std::move(*loaded);
}

std::optional<Seconds> shortest_resume_timeout(const Config& config, const Snapshot& shot) {
  std::unordered_set<NodeName> waiting;
  for (const Node& node : shot.nodes.items) {
    if (is_powering_up(node) && config.find(node.name) != nullptr) waiting.insert(node.name);
  }
  if (waiting.empty()) return std::nullopt;
  std::optional<Seconds> shortest;
  if (!shot.settings.resume_timeout_is_infinite) shortest = shot.settings.resume_timeout;
  for (const Partition& partition : shot.partitions.items) {
    if (partition.resume_timeout == Seconds{0} || partition.resume_timeout_is_infinite) continue;
    const bool concerns = std::any_of(partition.nodes.begin(),
                                      partition.nodes.end(),
                                      [&](const NodeName& node) { return waiting.contains(node); });
    if (concerns) shortest = std::min(shortest.value_or(Seconds::max()), partition.resume_timeout);
  }
  return shortest;
}

Result<Done> observe_whole(
    Cloud& cloud, Scheduler& scheduler, const Config& config, TimePoint now, Snapshot& shot) {
  if (auto seen = observe(cloud, scheduler, config, now, shot); !seen) return seen;
  if (!shot.unseen.empty()) return shot.unseen.begin()->second.in("Compute Engine");
  return Done{};
}

}  // namespace flex
