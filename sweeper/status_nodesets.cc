// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/hostlist.h"
#include "lib/slurm/node_state.h"
#include "sweeper/status_parts.h"
#include "sweeper/words.h"

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace flex::status {

namespace {

struct Tally {
  std::map<std::string_view, std::vector<NodeName>> nodes{};
  std::set<JobId> waiting{};
  std::set<JobId> running{};
  std::size_t vms = 0;
  std::optional<TimePoint> next_end{};
};

void count(Tally& tally, const NodePicture& node) {
  tally.nodes[node_word(node)].push_back(node.name);
  for (const Job* job : node.jobs)
    (job->is_configuring ? tally.waiting : tally.running).insert(job->id);
  if (!node.has_vm()) return;
  ++tally.vms;
  const auto& ends = node.entry->terminates;
  if (ends && (!tally.next_end || *ends < *tally.next_end)) tally.next_end = *ends;
}

Json to_json(const NodesetConfig& set, const Tally& tally) {
  Json states = Json::object();
  Json nodes_by_state = Json::object();
  for (const auto& [word, nodes] : tally.nodes) {
    states[std::string(word)] = nodes.size();
    nodes_by_state[std::string(word)] = fold_hostlist(nodes);
  }
  Json json{{"name", set.name},
            {"mode", mode_name(set.mode)},
            {"nodes", set.nodes.size()},
            {"static_nodes", set.static_nodes.size()},
            {"vms", tally.vms},
            {"states", std::move(states)},
            {"nodes_by_state", std::move(nodes_by_state)},
            {"jobs_waiting", tally.waiting.size()},
            {"jobs_running", tally.running.size()}};
  if (tally.next_end) json["next_end"] = iso(*tally.next_end);
  return json;
}

}  // namespace

Json nodesets(const Look& look, bool is_blind) {
  std::vector<Tally> tallies(look.config.nodesets.size());
  if (!is_blind) {
    for (const NodePicture& node : look.picture.nodes()) count(tallies[node.nodeset], node);
  }
  Json sets = Json::array();
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const NodesetConfig& set = look.config.nodesets[i];
    Json json = to_json(set, tallies[i]);
    const auto stopped = look.memory.stopped.find(set.name);
    if (stopped != look.memory.stopped.end()) json["stopped"] = stopped->second.why;
    const auto pause = look.shot.pauses.find(set.name);
    if (pause != look.shot.pauses.end())
      json["paused"] = pause->second.why();
    else if (stopped != look.memory.stopped.end() && stopped->second.is_paused)
      json["paused"] = stopped->second.why;
    sets.push_back(std::move(json));
  }
  return sets;
}

}  // namespace flex::status
