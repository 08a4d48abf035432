// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/explain/gather.h"

#include "ctl/known.h"
#include "lib/core/state_file.h"
#include "lib/fleet/session.h"
#include "sweeper/observe.h"

#include <fmt/format.h>

#include <charconv>

namespace flex {

namespace {

constexpr std::size_t kMostHeartbeat = 100;
/// Somebody waits for the answer.
constexpr RetryPolicy kRetry{.limit = 2};

void read_state(const std::string& state_dir, Gathered& found) {
  HistoryMark mark;
  const auto read =
      read_history(state_dir, mark, [&](Event event) { found.events.push_back(std::move(event)); });
  if (!read)
    found.notes.push_back(fmt::format("There is no history to read: {}", read.error().what));
  Known known = read_known(state_dir);
  found.memory = std::move(known.memory);
  found.shot.pauses = std::move(known.pauses);
  found.notes.insert(found.notes.end(), known.problems.begin(), known.problems.end());
  const auto beat = read_small_file(state_dir + "/heartbeat", kMostHeartbeat);
  std::int64_t seconds = 0;
  if (beat) std::from_chars(beat->data(), beat->data() + beat->size(), seconds);
  found.last_sweep = TimePoint{Seconds{seconds}};
}

void look_at_slurm(Scheduler& scheduler, Gathered& found) {
  const auto seen = observe_slurm(scheduler, found.shot);
  found.has_slurm = seen.has_value();
  if (!seen) found.notes.push_back(fmt::format("Slurm cannot be asked: {}", seen.error().what));
}

/// As the sweeper looks, so that the story is told of what it acts on.
void look(Setup& setup, Gathered& found) {
  if (setup.scheduler == nullptr) {
    found.notes.push_back(fmt::format("Slurm cannot be asked: {}", setup.why_no_slurm));
    return;
  }
  auto cluster = cluster_of(setup);
  if (!cluster) {
    found.notes.push_back(fmt::format("Compute Engine cannot be asked: {}", cluster.error().what));
    return look_at_slurm(*setup.scheduler, found);
  }
  found.shot.cluster = *std::move(cluster);
  auto cloud = open_cloud(setup.config, kRetry);
  if (!cloud) {
    found.notes.push_back(fmt::format("Compute Engine cannot be asked: {}", cloud.error().what));
    return look_at_slurm(*setup.scheduler, found);
  }
  const auto seen =
      observe_whole(**cloud, *setup.scheduler, setup.config, found.shot.now, found.shot);
  if (seen) {
    found.has_slurm = found.has_cloud = true;
    return;
  }
  found.notes.push_back(fmt::format("Not all could be seen: {}", seen.error().what));
  // Compute Engine is looked at first: if Slurm is what failed, the groups are there.
  found.has_cloud = seen.error().what.starts_with("slurmctld");
  if (!found.has_cloud) look_at_slurm(*setup.scheduler, found);
}

}  // namespace

Facts Gathered::facts(const Config& config) const {
  return {.config = config,
          .shot = shot,
          .memory = memory,
          .last_sweep = last_sweep,
          .has_slurm = has_slurm,
          .has_cloud = has_cloud,
          .notes = notes};
}

Gathered gather(Setup& setup) {
  Gathered found;
  found.shot.now = wall_clock();
  const auto state_dir = state_dir_of(setup);
  if (state_dir)
    read_state(*state_dir, found);
  else
    found.notes.push_back(fmt::format("The history cannot be found: {}", state_dir.error().what));
  look(setup, found);
  return found;
}

}  // namespace flex
