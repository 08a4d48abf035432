// SPDX-License-Identifier: GPL-2.0-or-later
// How long the sweeper's decisions take on a large cluster: 100,000 nodes, 20,000 requests and
// 2,000 groups, and on a tenth and a hundredth of that. Prints one JSON line each. The time is the
// processor's: others may use the machine, too.
#include "lib/core/names.h"
#include "lib/fleet/groups.h"
#include "sweeper/decide.h"

#include <fmt/format.h>
#include <slurm/slurm.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

namespace flex {

namespace {

constexpr std::size_t kNodesOfRequest = 5;
constexpr int kRounds = 21;

struct World {
  Config config{};
  Snapshot shot{};
};

/// Per ten nodes: five that wait in a request for a job, two that run one, one idle, one off, and
/// one orphan, so that every rule has something to look at.
World make_world(std::size_t groups, std::size_t nodes_each) {
  World world;
  world.config.region = "us-central1";
  world.config.sweeper.max_deletes_per_round = 100000;
  world.shot.cluster = "hpc";
  world.shot.now = TimePoint{Seconds{1'800'000'000}};
  world.shot.settings.resume_timeout = Seconds{65533};
  world.shot.settings.version = "22.05.8";
  JobId next_job = 1;
  for (std::size_t g = 0; g < groups; ++g) {
    NodesetConfig set;
    set.name = fmt::format("n{}", g);
    set.instance_template = "template";
    set.zones = {"us-central1-a"};
    SweptGroup group;
    group.group.name = nodeset_group_name("hpc", set.name);
    group.group.description = ownership_mark("hpc", set.name);
    group.nodeset = set.name;
    for (std::size_t i = 0; i < nodes_each; ++i) {
      const NodeName name{fmt::format("n{}-{}", g, i)};
      world.config.places[name] = {.nodeset = g, .index = i};
      set.nodes.push_back(name);
      Node node;
      node.name = name;
      const std::size_t kind = i % 10;
      const bool is_waiting = kind < 5;
      const bool is_running = kind == 5 || kind == 6;
      const bool is_up = is_running || kind == 7;
      node.state = NODE_STATE_CLOUD;
      node.state |= static_cast<std::uint32_t>(is_waiting || is_running ? NODE_STATE_ALLOCATED
                                                                        : NODE_STATE_IDLE);
      if (is_waiting) node.state |= static_cast<std::uint32_t>(NODE_STATE_POWERING_UP);
      if (!is_waiting && !is_up) node.state |= static_cast<std::uint32_t>(NODE_STATE_POWERED_DOWN);
      Instance instance;
      instance.name = name;
      if (is_waiting) instance.action = InstanceAction::Creating;
      if (is_up || kind == 9) {
        instance.status = InstanceStatus::Running;
        instance.url = "https://x/zones/us-central1-a/instances/" + name.text;
        instance.id = std::to_string(1000 + i);
        instance.terminates = world.shot.now + Seconds{3600};
      }
      if (kind != 8) group.instances.push_back(instance);
      world.shot.nodes.items.push_back(node);
      if (kind == 4 || kind == 6) {
        Job job;
        job.id = next_job++;
        job.is_running = true;
        job.is_batch = job.may_requeue = true;
        job.is_configuring = kind == 4;
        job.time_limit = Seconds{3600};
        const std::size_t count = kind == 4 ? kNodesOfRequest : 2;
        for (std::size_t k = 0; k < count; ++k)
          job.nodes.push_back({fmt::format("n{}-{}", g, i - k)});
        if (kind == 4) {
          ResizeRequest request;
          request.name = {fmt::format("j{}-x", job.id)};
          request.group = group.group.name;
          request.state = RequestState::Accepted;
          request.nodes = job.nodes;
          request.description = request_description(job.id, job.nodes);
          request.run_duration = Seconds{4500};
          request.created = world.shot.now - Seconds{600};
          group.requests.push_back(request);
          request.name = {fmt::format("j{}-done", job.id)};
          request.state = RequestState::Succeeded;
          group.requests.push_back(request);
        }
        world.shot.jobs.items.push_back(std::move(job));
      }
    }
    group.group.target_size = static_cast<std::int64_t>(group.instances.size());
    world.shot.groups.push_back(std::move(group));
    world.config.nodesets.push_back(std::move(set));
  }
  return world;
}

/// The processor time of this process.
std::chrono::duration<double, std::milli> used() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

void measure(std::size_t groups, std::size_t nodes_each) {
  World world = make_world(groups, nodes_each);
  std::size_t requests = 0;
  for (const SweptGroup& group : world.shot.groups) requests += group.requests.size();
  Memory memory;
  std::vector<double> times;
  std::size_t actions = 0;
  for (int i = 0; i < kRounds; ++i) {
    world.shot.now += Seconds{15};
    const auto started = used();
    actions = decide(world.config, world.shot, memory).actions.size();
    times.push_back((used() - started).count());
  }
  std::sort(times.begin(), times.end());
  std::cout
      << fmt::format(
             R"({{"nodes": {}, "requests": {}, "groups": {}, "actions": {}, "median_ms": {:.2f}, "worst_ms": {:.2f}}})",
             groups * nodes_each,
             requests,
             groups,
             actions,
             times[times.size() / 2],
             times.back())
      << '\n';
}

}  // namespace

}  // namespace flex

int main() {
  flex::measure(20, 50);
  flex::measure(200, 50);
  flex::measure(2000, 50);
  return 0;
}
