// SPDX-License-Identifier: GPL-2.0-or-later
#include "sweeper/metrics_gauges.h"

#include "sweeper/leaks.h"
#include "sweeper/lease.h"
#include "sweeper/queue.h"
#include "sweeper/words.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <prometheus/gauge.h>
#include <set>

namespace flex {

namespace {

using prometheus::BuildGauge;
using prometheus::Gauge;
using prometheus::Labels;
using prometheus::Registry;
using Family = prometheus::Family<Gauge>;

/// A lease that ends within this is worth a look.
constexpr Seconds kSoon = std::chrono::hours{1};

Family& family(Registry& registry, const std::string& name, const std::string& help) {
  return BuildGauge().Name(name).Help(help).Register(registry);
}

void set(Registry& registry, const std::string& name, const std::string& help, double value) {
  family(registry, name, help).Add({}).Set(value);
}

double seconds_of(TimePoint time) {
  return static_cast<double>(time.time_since_epoch().count());
}

double count_of(std::size_t count) {
  return static_cast<double>(count);
}

/// All that is counted by nodeset.
struct Tally {
  std::map<std::string_view, std::size_t> nodes{};
  std::map<std::string_view, std::size_t> vms{};
  std::map<std::string_view, std::size_t> requests{};
  std::set<JobId> waiting{};
  std::set<JobId> running{};
  std::set<JobId> overrun{};
  std::size_t ends_soon = 0;
  std::optional<TimePoint> next_end{};
  Seconds longest_wait{};
};

using Tallies = std::map<std::string, Tally>;

void count_nodes(const MetricsView& view, const Picture& picture, Tallies& tallies) {
  for (const NodePicture& node : picture.nodes()) {
    Tally& tally = tallies[view.config.nodesets[node.nodeset].name];
    ++tally.nodes[node_word(node)];
    for (const Job* job : node.jobs) {
      // Once for a job: its lease is looked up over all its nodes.
      const bool is_new =
          (job->is_configuring ? tally.waiting : tally.running).insert(job->id).second;
      if (job->is_configuring || !is_new) continue;
      const auto lease = lease_of(picture, *job);
      if (lease && overrun_of(*job, *lease)) tally.overrun.insert(job->id);
    }
    if (!node.has_vm() || !node.entry->terminates) continue;
    const TimePoint ends = *node.entry->terminates;
    if (!tally.next_end || ends < *tally.next_end) tally.next_end = ends;
    if (ends - view.shot.now <= kSoon) ++tally.ends_soon;
  }
}

void count_cloud(const MetricsView& view, const Picture& picture, Tallies& tallies) {
  for (const SweptGroup& group : view.shot.groups) {
    Tally& tally = tallies[group.nodeset];
    for (const Instance& instance : group.instances) {
      if (!instance.is_queued()) ++tally.vms[vm_word(instance, picture.find(instance.name))];
    }
    for (const ResizeRequest& request : group.requests) {
      ++tally.requests[request_word(request.state)];
      const bool waits = request.is_active() && request.created != TimePoint{};
      if (waits) tally.longest_wait = std::max(tally.longest_wait, view.shot.now - request.created);
    }
  }
}

template <class Words>
void add_words(Family& to,
               const std::string& nodeset,
               const Words& words,
               const std::map<std::string_view, std::size_t>& counts) {
  for (const std::string_view word : words) {
    const auto found = counts.find(word);
    to.Add({{"nodeset", nodeset}, {"state", std::string(word)}})
        .Set(found == counts.end() ? 0 : count_of(found->second));
  }
}

void add_nodesets(Registry& registry, const MetricsView& view) {
  const Picture picture{view.config, view.shot};
  Tallies tallies;
  for (const NodesetConfig& set : view.config.nodesets) tallies[set.name];
  count_nodes(view, picture, tallies);
  count_cloud(view, picture, tallies);

  Family& nodes = family(registry, "flex_start_nodes", "Nodes by what they are doing.");
  Family& vms = family(registry, "flex_start_vms", "VMs of ours, by nodeset and state.");
  Family& requests =
      family(registry, "flex_start_requests", "Requests that Google lists, by their state.");
  Family& jobs = family(
      registry, "flex_start_jobs", "Jobs that hold nodes: waiting for their VMs, or running.");
  Family& overruns = family(registry,
                            "flex_start_jobs_past_lease",
                            "Running jobs whose time limit is after the end of their VMs.");
  Family& soon = family(
      registry, "flex_start_leases_ending_soon", "VMs that end within the hour, by nodeset.");
  Family& next_end = family(registry,
                            "flex_start_lease_seconds_left_min",
                            "Seconds until the VM ends that ends first; none: no VM.");
  Family& wait = family(registry,
                        "flex_start_request_wait_seconds_max",
                        "How long the request waits that waits longest; 0: none does.");
  Family& stopped =
      family(registry, "flex_start_nodeset_stopped", "1 if the breaker has stopped the nodeset.");
  Family& paused =
      family(registry, "flex_start_nodeset_paused", "1 if an admin has paused the nodeset.");
  for (const auto& [name, tally] : tallies) {
    const Labels labels{{"nodeset", name}};
    add_words(nodes, name, kNodeWords, tally.nodes);
    add_words(vms, name, kVmWords, tally.vms);
    add_words(requests, name, kRequestWords, tally.requests);
    jobs.Add({{"nodeset", name}, {"state", "waiting"}}).Set(count_of(tally.waiting.size()));
    jobs.Add({{"nodeset", name}, {"state", "running"}}).Set(count_of(tally.running.size()));
    overruns.Add(labels).Set(count_of(tally.overrun.size()));
    soon.Add(labels).Set(count_of(tally.ends_soon));
    wait.Add(labels).Set(static_cast<double>(tally.longest_wait.count()));
    const auto stop = view.memory.stopped.find(name);
    const bool is_stopped = stop != view.memory.stopped.end();
    const bool is_paused =
        view.shot.pauses.contains(name) || (is_stopped && stop->second.is_paused);
    stopped.Add(labels).Set(is_stopped && !is_paused ? 1 : 0);
    paused.Add(labels).Set(is_paused ? 1 : 0);
    if (tally.next_end)
      next_end.Add(labels).Set(static_cast<double>((*tally.next_end - view.shot.now).count()));
  }
}

void add_leaks(Registry& registry, const MetricsView& view) {
  Family& leaked = family(registry,
                          "flex_start_leaked_resources",
                          "Things of ours that should be gone, and are not. Must be 0.");
  for (const std::string_view kind : kLeakKinds) {
    const auto is_kind = [&](const Leak& leak) { return leak.kind == kind; };
    const auto& leaks = view.status.leaks;
    leaked.Add({{"kind", std::string(kind)}})
        .Set(static_cast<double>(std::count_if(leaks.begin(), leaks.end(), is_kind)));
  }
}

/// What Google has room for: what the config says, or less where it was met before.
std::size_t request_limit(const MetricsView& view) {
  const std::size_t most = view.config.api.max_active_requests;
  const std::size_t met = view.memory.requests.limit;
  return met == 0 ? most : std::min(most, met);
}

void add_sweeper(Registry& registry, const MetricsView& view) {
  const Status& status = view.status;
  family(registry, "flex_start_build_info", "1; the labels say what runs.")
      .Add({{"version", FLEX_VERSION},
            {"cluster", view.shot.cluster},
            {"region", view.config.region}})
      .Set(1);
  set(registry,
      "flex_start_sweeper_active",
      "1 if slurmctld is in charge on this host; 0 beside a backup controller.",
      status.state == "passive" ? 0 : 1);
  set(registry,
      "flex_start_last_successful_round_timestamp_seconds",
      "When the last complete round began; 0: there was none yet.",
      seconds_of(status.last_complete));
  set(registry,
      "flex_start_rounds_incomplete_in_a_row",
      "Rounds without a complete look since the last one with.",
      static_cast<double>(status.failures_in_a_row));
  set(registry,
      "flex_start_start_timestamp_seconds",
      "When the sweeper was started.",
      seconds_of(status.started));
}

/// What the last look has seen of Google's queue.
void add_queue(Registry& registry, const MetricsView& view) {
  set(registry,
      "flex_start_groups",
      "Managed instance groups of this cluster.",
      count_of(view.shot.groups.size()));
  set(registry,
      "flex_start_active_requests",
      "Requests that take a place in Google's queue.",
      count_of(count_active_requests(view.shot)));
  set(registry,
      "flex_start_active_requests_limit",
      "How many may: api.max_active_requests, or fewer where Google refused more.",
      count_of(request_limit(view)));
  set(registry,
      "flex_start_requests_waiting_for_turn",
      "Requests that are asked for when there is room.",
      count_of(view.waiting));
}

}  // namespace

void add_gauges(Registry& registry, const MetricsView& view) {
  add_sweeper(registry, view);
  // Beside a backup controller, and at the start, nothing is known: not even that it is 0.
  if (view.status.is_blind) return;
  add_queue(registry, view);
  add_nodesets(registry, view);
  add_leaks(registry, view);
}

}  // namespace flex
