// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/demand.h"

#include "lib/fleet/groups.h"
#include "lib/slurm/node_state.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

namespace flex {

namespace {

/// How long its VMs are to live.
Seconds need_of(const Config& config, const Job& job) {
  for (const NodeName& node : job.nodes) {
    const Config::Place* const place = config.find(node);
    if (place == nullptr) continue;
    const NodesetConfig& nodeset = config.nodesets[place->nodeset];
    return run_duration(nodeset, &job, nodeset.mode).run;
  }
  return Seconds{0};
}

/// Longest first. Equal ones by id, so that the same input gives the same plan.
void sort_by_need(const Config& config, std::vector<Job>& jobs) {
  std::unordered_map<JobId, Seconds> needs;
  for (const Job& job : jobs) needs[job.id] = need_of(config, job);
  std::sort(jobs.begin(), jobs.end(), [&](const Job& left, const Job& right) {
    const Seconds longer = needs.at(left.id);
    const Seconds shorter = needs.at(right.id);
    return longer != shorter ? longer > shorter : left.id < right.id;
  });
}

bool is_static(const Config& config, const NodeName& node) {
  const Config::Place* const place = config.find(node);
  return place != nullptr && place->is_static;
}

/// slurmctld did not answer: the file's jobs as they are, without a time limit.
std::vector<Job> jobs_of_file(const ResumeRequest& request) {
  std::vector<Job> jobs;
  for (const ResumeRequest::JobEntry& entry : request.jobs) {
    Job job;
    job.id = entry.id;
    job.nodes = entry.nodes_resume;
    job.partition = entry.partition;
    job.extra = entry.extra;
    job.is_running = true;
    job.is_configuring = true;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// The jobs that may hold the nodes, from whoever can say.
std::vector<Job> jobs_to_serve(const DemandInput& input, const std::vector<NodeName>& nodes) {
  std::vector<Job> jobs;
  if (input.jobs != nullptr) {
    std::copy_if(
        input.jobs->begin(), input.jobs->end(), std::back_inserter(jobs), [](const Job& job) {
          return job.holds_nodes();
        });
    return jobs;
  }
  if (input.request != nullptr) return jobs_of_file(*input.request);
  // Nobody can say whose nodes they are: all or nothing, so that no part of a job is paid for while
  // it waits for the rest.
  Job unknown;
  for (const NodeName& node : nodes) {
    if (!is_static(input.config, node)) unknown.nodes.push_back(node);
  }
  jobs.push_back(std::move(unknown));
  return jobs;
}

}  // namespace

Demand resolve_demand(const DemandInput& input) {
  Demand demand;
  std::unordered_set<NodeName> open;
  std::vector<NodeName> ordered;
  for (const NodeName& node : input.nodes) {
    if (input.config.find(node) == nullptr) {
      demand.foreign.push_back(node);
    } else if (open.insert(node).second) {
      ordered.push_back(node);
    }
  }
  std::vector<Job> jobs = jobs_to_serve(input, ordered);
  sort_by_need(input.config, jobs);
  for (Job& job : jobs) {
    std::vector<NodeName> mine;
    std::vector<NodeName> kept;
    for (const NodeName& node : job.nodes) {
      if (is_static(input.config, node) && open.contains(node))
        kept.push_back(node);
      else if (open.erase(node) > 0)
        mine.push_back(node);
    }
    if (!kept.empty()) demand.on_static.push_back({.job = job, .nodes = std::move(kept)});
    if (!mine.empty()) demand.jobs.push_back({.job = std::move(job), .nodes = std::move(mine)});
  }
  std::unordered_set<NodeName> was_for_a_job;
  if (input.request != nullptr) {
    for (const ResumeRequest::JobEntry& entry : input.request->jobs) {
      was_for_a_job.insert(entry.nodes_resume.begin(), entry.nodes_resume.end());
    }
  }
  for (const NodeName& node : ordered) {
    if (!open.contains(node)) continue;
    const bool is_unwanted = was_for_a_job.contains(node) && !is_static(input.config, node);
    (is_unwanted ? demand.unwanted : demand.jobless).push_back(node);
  }
  return demand;
}

std::vector<NodeName> rest_of_jobs(const Config& config, const Demand& demand) {
  std::unordered_set<NodeName> known(demand.jobless.begin(), demand.jobless.end());
  known.insert(demand.unwanted.begin(), demand.unwanted.end());
  for (const Demand::JobNodes& wanted : demand.jobs)
    known.insert(wanted.nodes.begin(), wanted.nodes.end());
  std::unordered_map<NodeName, std::size_t> holders;
  for (const Job& job : demand.living) {
    for (const NodeName& node : job.nodes) ++holders[node];
  }
  std::vector<NodeName> rest;
  for (const Demand::JobNodes& wanted : demand.jobs) {
    for (const NodeName& node : wanted.job.nodes) {
      const Config::Place* const place = config.find(node);
      if (place == nullptr || place->is_static) continue;
      const auto found = holders.find(node);
      const bool is_shared = found != holders.end() && found->second > 1;
      if (!is_shared && known.insert(node).second) rest.push_back(node);
    }
  }
  return rest;
}

std::vector<NodeName> others_of_jobs(const Config& config, const Demand& demand) {
  std::unordered_set<NodeName> known;
  for (const Demand::JobNodes& wanted : demand.jobs)
    known.insert(wanted.nodes.begin(), wanted.nodes.end());
  std::vector<NodeName> others;
  for (const Demand::JobNodes& wanted : demand.jobs) {
    for (const NodeName& node : wanted.job.nodes) {
      const Config::Place* const place = config.find(node);
      if (place != nullptr && !place->is_static && known.insert(node).second)
        others.push_back(node);
    }
  }
  return others;
}

void note_states(const Config& config,
                 const std::vector<Node>& nodes,
                 const std::vector<NodeName>& lacking,
                 Demand& demand) {
  std::unordered_set<NodeName> coming;
  for (const Node& node : nodes) {
    if (!is_up(node) && !is_powering_down(node)) coming.insert(node.name);
  }
  std::unordered_set<NodeName> open;
  for (const NodeName& node : lacking)
    (coming.contains(node) ? open : demand.not_coming).insert(node);
  std::vector<NodeName> rest = rest_of_jobs(config, demand);
  std::erase_if(rest, [&](const NodeName& node) { return !open.contains(node); });
  add_rest(demand, rest);
}

void add_rest(Demand& demand, const std::vector<NodeName>& rest) {
  std::unordered_set<NodeName> open(rest.begin(), rest.end());
  for (Demand::JobNodes& wanted : demand.jobs) {
    const std::unordered_set<NodeName> mine(wanted.nodes.begin(), wanted.nodes.end());
    std::vector<NodeName> all;
    // In the job's own order, so that whoever asks asks for the same.
    for (const NodeName& node : wanted.job.nodes) {
      if (mine.contains(node) || open.erase(node) > 0) all.push_back(node);
    }
    wanted.nodes = std::move(all);
  }
}

bool covers(const ResumeRequest& request,
            std::span<const NodeName> nodes,
            std::span<const Job> jobs) {
  std::unordered_set<JobId> named;
  for (const ResumeRequest::JobEntry& entry : request.jobs) named.insert(entry.id);
  std::unordered_set<NodeName> covered;
  for (const Job& job : jobs) {
    if (named.contains(job.id) && job.holds_nodes())
      covered.insert(job.nodes.begin(), job.nodes.end());
  }
  return std::all_of(
      nodes.begin(), nodes.end(), [&](const NodeName& node) { return covered.contains(node); });
}

}  // namespace flex
