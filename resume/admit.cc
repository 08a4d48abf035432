// SPDX-License-Identifier: GPL-2.0-or-later
#include "resume/admit.h"

#include "lib/fleet/queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace flex {

namespace {

/// The key of a set: its leader, or the first node of a request without a job.
using SetKey = std::pair<JobId, NodeName>;

class SetKeys {
 public:
  explicit SetKeys(const Demand& demand) {
    for (const Demand::JobNodes& wanted : demand.jobs) jobs_[wanted.job.id] = &wanted.job;
  }

  [[nodiscard]] SetKey key_of(JobId job, const NodeName& first) const {
    if (job == 0) return {0, first};
    const Job* const known = find(job);
    return {known == nullptr ? job : leader_of(*known), {}};
  }

  [[nodiscard]] const Job* find(JobId job) const {
    const auto found = jobs_.find(job);
    return found == jobs_.end() ? nullptr : found->second;
  }

 private:
  std::unordered_map<JobId, const Job*> jobs_{};
};

/// Removes requests; groups that were only for them go, too.
void remove_requests(ResumePlan& plan, const std::function<bool(const PlannedRequest&)>& is_left) {
  for (GroupPlan& group : plan.groups) std::erase_if(group.requests, is_left);
  std::erase_if(plan.groups, [](const GroupPlan& group) { return group.requests.empty(); });
}

void leave(const Demand& demand, const std::set<SetKey>& keys, ResumePlan& plan) {
  const SetKeys sets{demand};
  remove_requests(plan, [&](const PlannedRequest& request) {
    return keys.contains(sets.key_of(request.job, request.spec.nodes.front()));
  });
}

SetKey key_of(const AskSet& set) {
  return set.jobs.empty() ? SetKey{0, set.ask.first} : SetKey{set.ask.job, {}};
}

void refuse(const Demand& demand, const AskSet& set, const std::string& why, ResumePlan& plan) {
  const std::unordered_set<NodeName> names(set.nodes.begin(), set.nodes.end());
  for (const Demand::JobNodes& wanted : demand.jobs) {
    if (std::find(set.jobs.begin(), set.jobs.end(), wanted.job.id) == set.jobs.end()) continue;
    Refusal refusal{.job = wanted.job.id, .error = {ErrorKind::Invalid, why, "MAX_NODES"}};
    for (const NodeName& node : wanted.nodes) {
      if (names.contains(node)) refusal.nodes.push_back(node);
    }
    if (!refusal.nodes.empty()) plan.refusals.push_back(std::move(refusal));
  }
}

}  // namespace

JobId leader_of(const Job& job) {
  return job.het_job_id != 0 ? job.het_job_id : job.id;
}

void add_nodes(PendingAsk& ask, const Config& config, const std::vector<NodeName>& nodes) {
  for (const NodeName& node : nodes) {
    const Config::Place* const place = config.find(node);
    if (place != nullptr && config.nodesets[place->nodeset].max_nodes != 0)
      ask.nodes[place->nodeset].insert(node);
  }
}

void add_whole(PendingAsk& ask, const Config& config, const Job& job) {
  for (const NodeName& node : job.nodes) {
    const Config::Place* const place = config.find(node);
    if (place != nullptr && config.nodesets[place->nodeset].max_nodes != 0)
      ask.whole[place->nodeset].insert(node);
  }
}

std::vector<AskSet> sets_of(const Config& config,
                            const Demand& demand,
                            const ResumePlan& plan,
                            TimePoint now) {
  const SetKeys keys{demand};
  std::map<SetKey, AskSet> sets;
  std::map<SetKey, std::set<NodeName>> known;
  for (const GroupPlan& group : plan.groups) {
    for (const PlannedRequest& request : group.requests) {
      const std::vector<NodeName>& nodes = request.spec.nodes;
      const SetKey key = keys.key_of(request.job, nodes.front());
      const auto [found, is_new] = sets.try_emplace(key);
      AskSet& set = found->second;
      if (is_new) set.ask = {.job = key.first, .first = nodes.front(), .since = now};
      if (group.spec.kind == GroupKind::Queued) ++set.ask.requests;
      add_nodes(set.ask, config, nodes);
      for (const NodeName& node : nodes) {
        if (known[key].insert(node).second) set.nodes.push_back(node);
      }
      const bool is_known =
          request.job == 0 ||
          std::find(set.jobs.begin(), set.jobs.end(), request.job) != set.jobs.end();
      if (is_known) continue;
      set.jobs.push_back(request.job);
      const Job* const job = keys.find(request.job);
      if (job == nullptr) continue;
      if (job->start_time != TimePoint{}) set.ask.since = std::min(set.ask.since, job->start_time);
      add_whole(set.ask, config, *job);
    }
  }
  for (const Refusal& refusal : plan.refusals) {
    const auto set = sets.find(keys.key_of(refusal.job, refusal.nodes.front()));
    if (set != sets.end() && refusal.job != 0) set->second.refused = refusal.error.what;
  }
  std::vector<AskSet> all;
  for (auto& [key, set] : sets) all.push_back(std::move(set));
  return all;
}

std::vector<LeftAsk> admit_plan(const Config& config,
                                const Demand& demand,
                                const AdmissionLimits& limits,
                                TimePoint now,
                                ResumePlan& plan) {
  std::vector<AskSet> sets = sets_of(config, demand, plan, now);
  std::vector<LeftAsk> left;
  std::set<SetKey> leaving;
  const auto leave_set = [&](const AskSet& set, std::string why) {
    left.push_back({.job = set.ask.job, .nodes = set.nodes, .why = std::move(why)});
    leaving.insert(key_of(set));
  };
  std::erase_if(sets, [&](const AskSet& set) {
    if (set.refused.empty()) return false;
    leave_set(set, fmt::format("a part of it cannot be asked for now: {}", set.refused));
    return true;
  });
  std::vector<PendingAsk> asks;
  for (const AskSet& set : sets) asks.push_back(set.ask);
  const std::vector<Admission> admissions = admit_requests(asks, limits);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const Admission& admission = admissions[i];
    if (admission.verdict == AdmissionVerdict::Wait) leave_set(sets[i], admission.why);
    if (admission.verdict != AdmissionVerdict::Never) continue;
    refuse(demand, sets[i], admission.why, plan);
    leaving.insert(key_of(sets[i]));
  }
  leave(demand, leaving, plan);
  return left;
}

void keep_to_max_nodes(const Config& config,
                       const Demand& demand,
                       std::map<std::size_t, NodesetRoom> rooms,
                       TimePoint now,
                       ResumePlan& plan) {
  const AdmissionLimits limits{.most = std::numeric_limits<std::size_t>::max(),
                               .nodesets = std::move(rooms)};
  for (LeftAsk& ask : admit_plan(config, demand, limits, now, plan))
    plan.refusals.push_back({.job = ask.job,
                             .nodes = std::move(ask.nodes),
                             .error = {ErrorKind::Quota, std::move(ask.why), "MAX_NODES"}});
}

std::vector<LeftAsk> leave_limited(const Config& config,
                                   const Demand& demand,
                                   const std::string& why,
                                   ResumePlan& plan) {
  std::vector<LeftAsk> left;
  std::set<SetKey> leaving;
  for (const AskSet& set : sets_of(config, demand, plan, {})) {
    if (set.ask.nodes.empty()) continue;
    left.push_back({.job = set.ask.job, .nodes = set.nodes, .why = why});
    leaving.insert(key_of(set));
  }
  leave(demand, leaving, plan);
  return left;
}

std::vector<NodeName> limited_nodes(const Config& config, const ResumePlan& plan) {
  std::set<NodeName> limited;
  for (const GroupPlan& group : plan.groups) {
    for (const PlannedRequest& request : group.requests) {
      for (const NodeName& node : request.spec.nodes) {
        const Config::Place* const place = config.find(node);
        if (place != nullptr && config.nodesets[place->nodeset].max_nodes != 0)
          limited.insert(node);
      }
    }
  }
  return {limited.begin(), limited.end()};
}

std::vector<NodeName> leave_nodeset(const Demand& demand,
                                    const std::string& nodeset,
                                    ResumePlan& plan) {
  const SetKeys sets{demand};
  std::set<SetKey> leaving;
  for (const GroupPlan& group : plan.groups) {
    if (group.nodeset != nodeset) continue;
    for (const PlannedRequest& request : group.requests)
      leaving.insert(sets.key_of(request.job, request.spec.nodes.front()));
  }
  std::vector<NodeName> left;
  std::unordered_set<NodeName> known;
  remove_requests(plan, [&](const PlannedRequest& request) {
    const std::vector<NodeName>& nodes = request.spec.nodes;
    if (!leaving.contains(sets.key_of(request.job, nodes.front()))) return false;
    for (const NodeName& node : nodes) {
      if (known.insert(node).second) left.push_back(node);
    }
    return true;
  });
  return left;
}

std::vector<PlannedCancel> find_parts(const Demand& demand,
                                      const std::vector<RequestOutcome>& outcomes) {
  const SetKeys keys{demand};
  std::unordered_set<NodeName> covered;
  for (const RequestOutcome& outcome : outcomes) {
    const std::vector<NodeName>& nodes = outcome.request.spec.nodes;
    if (outcome.result != RequestResult::Failed) covered.insert(nodes.begin(), nodes.end());
  }
  std::map<SetKey, std::string> lacking;
  for (const RequestOutcome& outcome : outcomes) {
    const std::vector<NodeName>& nodes = outcome.request.spec.nodes;
    if (outcome.result != RequestResult::Failed || outcome.request.job == 0 ||
        !is_active_requests_quota(outcome.error))
      continue;
    const bool is_lacking = std::any_of(
        nodes.begin(), nodes.end(), [&](const NodeName& node) { return !covered.contains(node); });
    if (is_lacking) lacking[keys.key_of(outcome.request.job, nodes.front())] = outcome.error.what;
  }
  std::vector<PlannedCancel> parts;
  for (const RequestOutcome& outcome : outcomes) {
    const PlannedRequest& request = outcome.request;
    if (outcome.result != RequestResult::Requested || request.spec.name.empty()) continue;
    const auto why = lacking.find(keys.key_of(request.job, request.spec.nodes.front()));
    if (why == lacking.end()) continue;
    parts.push_back(
        {.group = request.spec.group,
         .request = request.spec.name,
         .job = request.job,
         .nodes = request.spec.nodes,
         .why = fmt::format("there is no room for its job's other requests: {}", why->second)});
  }
  return parts;
}

AskedFile::Answers answers_of(const std::vector<RequestOutcome>& outcomes) {
  AskedFile::Answers answers;
  const auto is_asked = [](const RequestOutcome& outcome) {
    return outcome.result == RequestResult::Requested || outcome.result == RequestResult::Existing;
  };
  for (const RequestOutcome& outcome : outcomes) {
    if (is_asked(outcome)) continue;
    const bool is_unknown =
        outcome.result == RequestResult::Failed && outcome.error.kind == ErrorKind::Retry;
    const std::vector<NodeName>& nodes = outcome.request.spec.nodes;
    (is_unknown ? answers.unknown : answers.refused).insert(nodes.begin(), nodes.end());
  }
  for (const RequestOutcome& outcome : outcomes) {
    if (!is_asked(outcome)) continue;
    for (const NodeName& node : outcome.request.spec.nodes) {
      answers.refused.erase(node);
      answers.unknown.erase(node);
    }
  }
  return answers;
}

}  // namespace flex
