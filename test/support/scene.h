// SPDX-License-Identifier: GPL-2.0-or-later
// A small world for the sweeper's rules: nodeset "a" of cluster "hpc", set up in words, looked at
// round by round. What was decided comes back as short texts.
#pragma once

#include "lib/fleet/groups.h"
#include "lib/slurm/hostlist.h"
#include "sweeper/decide.h"
#include "test/support/builders.h"

#include <slurm/slurm.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

namespace flex::test {

// Slurm's states, as `sinfo` would call them.
inline constexpr std::uint32_t kOff = NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERED_DOWN;
inline constexpr std::uint32_t kComing =
    NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERING_UP | NODE_STATE_NO_RESPOND;
inline constexpr std::uint32_t kComingForJob =
    NODE_STATE_ALLOCATED | NODE_STATE_CLOUD | NODE_STATE_POWERING_UP | NODE_STATE_NO_RESPOND;
inline constexpr std::uint32_t kIdle = NODE_STATE_IDLE | NODE_STATE_CLOUD;
inline constexpr std::uint32_t kBusy = NODE_STATE_ALLOCATED | NODE_STATE_CLOUD;
inline constexpr std::uint32_t kGoing =
    NODE_STATE_IDLE | NODE_STATE_CLOUD | NODE_STATE_POWERING_DOWN;

inline std::vector<NodeName> names_in(const std::string& hostlist) {
  const auto names = expand_hostlist(hostlist);
  return *names;
}

/// For texts with a time of day in them: make one before anything else.
struct Utc {
  Utc() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

class Scene {
 public:
  explicit Scene(int count = 8) {
    settings = config({nodeset("a", nodes("a", count))});
    settings.sweeper.interval = Seconds{15};
    shot.cluster = "hpc";
    shot.seen_once = {"a"};
    shot.now = TimePoint{Seconds{1'800'000'000}};
    memory.last_round = shot.now;  // it has been running
    shot.settings.resume_timeout = Seconds{65533};
    shot.settings.version = "22.05.8";
    for (const NodeName& name : settings.nodesets[0].nodes) {
      Node node;
      node.name = name;
      node.state = kOff;
      shot.nodes.items.push_back(node);
    }
  }

  Config settings{};
  Snapshot shot{};
  Memory memory{};
  std::vector<Action> actions{};

  NodesetConfig& set() { return settings.nodesets[0]; }

  Node& node(const std::string& name) {
    return *std::find_if(shot.nodes.items.begin(), shot.nodes.items.end(), [&](const Node& known) {
      return known.name.text == name;
    });
  }

  void state(const std::string& hostlist, std::uint32_t state) {
    for (const NodeName& name : names_in(hostlist)) node(name.text).state = state;
  }

  void make_static(const std::string& hostlist) {
    set().static_nodes = names_in(hostlist);
    for (const NodeName& name : set().static_nodes) settings.places[name].is_static = true;
  }

  /// A job that waits for these nodes.
  Job& waiting_job(JobId id, const std::string& hostlist, Seconds limit = std::chrono::hours{1}) {
    shot.jobs.items.push_back(job(id, names_in(hostlist), limit));
    state(hostlist, kComingForJob);
    return shot.jobs.items.back();
  }

  Job& running_job(JobId id, const std::string& hostlist) {
    Job& made = waiting_job(id, hostlist);
    made.is_configuring = false;
    state(hostlist, kBusy);
    return made;
  }

  void end_job(JobId id) {
    for (Job& known : shot.jobs.items) {
      if (known.id != id) continue;
      known.is_finished = true;
      known.is_running = false;
    }
  }

  SweptGroup& owned(const std::string& name = "hpc-a", const std::string& of = "a") {
    for (SweptGroup& known : shot.groups) {
      if (known.group.name.text == name) return known;
    }
    SweptGroup& made = shot.groups.emplace_back();
    made.group = group(name, "hpc", of);
    made.nodeset = of;
    return made;
  }

  /// A request for these nodes with their entries in the group.
  ResizeRequest& asked(JobId id,
                       const std::string& hostlist,
                       RequestState in = RequestState::Accepted,
                       const std::string& name = {}) {
    SweptGroup& home = owned();
    std::vector<NodeName> members = names_in(hostlist);
    ResizeRequest made =
        request(name.empty() ? "j" + std::to_string(id) + "-x" : name, in, members);
    made.group = home.group.name;
    made.description = request_description(id, members);
    made.created = shot.now - Seconds{60};
    made.run_duration = std::chrono::minutes{75};
    if (made.is_active()) {
      for (const NodeName& member : members) home.instances.push_back(queued(member));
      home.group.target_size += static_cast<std::int64_t>(members.size());
    }
    home.requests.push_back(made);
    return home.requests.back();
  }

  /// VMs that run.
  void vms(const std::string& hostlist, const std::string& in = "hpc-a") {
    SweptGroup& home = owned(in);
    for (const NodeName& name : names_in(hostlist)) {
      std::erase_if(home.instances, [&](const Instance& known) { return known.name == name; });
      Instance made = running(name);
      made.id = "1" + std::to_string(home.instances.size());
      home.instances.push_back(made);
    }
    home.group.target_size = static_cast<std::int64_t>(home.instances.size());
  }

  Instance& entry(const std::string& name) {
    auto& all = owned().instances;
    return *std::find_if(
        all.begin(), all.end(), [&](const Instance& known) { return known.name.text == name; });
  }

  void no_vms() {
    owned().instances.clear();
    owned().group.target_size = 0;
  }

  /// One round, `later` after the last one: "rule what nodes target job=N", without the notes.
  std::vector<std::string> round(Seconds later = Seconds{15}) {
    std::vector<std::string> texts;
    for (const Action& action : raw_round(later)) {
      if (action.rule == Rule::JobNote || action.rule == Rule::NodeNote) continue;
      std::string text = std::string(to_string(action.rule)) + " " + std::string(kind_text(action));
      if (const auto names = nodes_of(action); !names.empty()) text += " " + fold_hostlist(names);
      if (const std::string target = target_of(action); !target.empty()) text += " @" + target;
      if (const JobId id = job_of(action); id != 0) text += " job=" + std::to_string(id);
      texts.push_back(std::move(text));
    }
    return texts;
  }

  std::vector<std::string> rounds(int count, Seconds later = Seconds{15}) {
    std::vector<std::string> last;
    for (int i = 0; i < count; ++i) last = round(later);
    return last;
  }

  std::vector<Action>& raw_round(Seconds later = Seconds{15}) {
    shot.now += later;
    Decision decision = decide(settings, shot, memory);
    postponed = decision.postponed;
    waiting_nodesets = std::move(decision.waiting_nodesets);
    actions = std::move(decision.actions);
    return actions;
  }

  /// The comments that the last round wants, by job.
  std::string comment(JobId id) const {
    for (const Action& action : actions) {
      const auto* tell = std::get_if<TellJob>(&action.what);
      if (tell != nullptr && tell->job == id) return tell->comment;
    }
    return {};
  }

  std::size_t postponed = 0;
  std::map<std::string, std::size_t> waiting_nodesets{};  ///< of the last round
};

using Texts = std::vector<std::string>;

}  // namespace flex::test
