// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/fleet/fit.h"

#include "lib/core/duration.h"
#include "lib/core/job_wish.h"
#include "lib/fleet/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace flex {

namespace {

bool holds(const std::vector<const Job*>& jobs, JobId id) {
  return std::any_of(jobs.begin(), jobs.end(), [&](const Job* job) { return job->id == id; });
}

/// Another living job has asked for the node, or is to: the first on the node asks for it.
bool is_anothers(const NodeFacts& facts, const NodeName& node, JobId job) {
  const auto& jobs = facts.jobs_on(node);
  bool is_mine = false;
  for (const ResizeRequest* request : facts.requests_on(node)) {
    const JobId id = request_job(*request);
    if (id == job) is_mine = true;
    if (id != 0 && id != job && holds(jobs, id)) return true;
  }
  return !is_mine && !jobs.empty() && jobs.front()->id != job;
}

/// The nodeset's nodes of a job that have no VM, by the group that each belongs in: one request
/// cannot be for two groups.
class Missing {
 public:
  Missing(const Config& config, const NodeFacts& facts, const Job& job, const NodeName& like) {
    const std::size_t nodeset = config.find(like)->nodeset;
    const NodesetConfig& settings = config.nodesets[nodeset];
    const std::size_t capacity = group_capacity(settings);
    std::size_t position = 0;
    std::optional<std::size_t> wanted;
    std::vector<std::pair<std::size_t, const NodeName*>> found;
    for (const NodeName& node : job.nodes) {
      const Config::Place* const place = config.find(node);
      if (place == nullptr || place->nodeset != nodeset) continue;
      const std::size_t at = settings.mig_scope == MigScope::Job ? position : place->index;
      ++position;
      if (node == like) wanted = at / capacity;
      if (place->is_static || !facts.lacks_vm(node) || is_anothers(facts, node, job.id)) continue;
      found.emplace_back(at / capacity, &node);
    }
    for (const auto& [group, node] : found) {
      if (group == wanted) nodes_.push_back(node);
    }
  }

  /// The first that the request does not name; null: it names them all. Above 1,000 nodes there
  /// are several requests, each for a part.
  [[nodiscard]] const NodeName* first_outside(const ResizeRequest& request) const {
    if (nodes_.size() > kMaxRequestSize) return nullptr;
    const std::unordered_set<NodeName> named(request.nodes.begin(), request.nodes.end());
    const auto outside = std::find_if(
        nodes_.begin(), nodes_.end(), [&](const NodeName* node) { return !named.contains(*node); });
    return outside == nodes_.end() ? nullptr : *outside;
  }

 private:
  std::vector<const NodeName*> nodes_{};
};

bool are_all_static(const Config& config, const std::vector<NodeName>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeName& node) {
    const Config::Place* const place = config.find(node);
    return place != nullptr && place->is_static;
  });
}

/// The jobs that hold all of its nodes; nothing if no node has a job. Static nodes are wanted
/// without one.
std::optional<std::vector<const Job*>> holders_of(const Config& config,
                                                  const NodeFacts& facts,
                                                  const ResizeRequest& request) {
  std::optional<std::vector<const Job*>> holders;
  bool has_idle = false;
  for (const NodeName& node : request.nodes) {
    const auto& jobs = facts.jobs_on(node);
    if (jobs.empty()) {
      has_idle = has_idle || !config.find(node)->is_static;
      continue;
    }
    if (!holders)
      holders = jobs;
    else
      std::erase_if(*holders, [&](const Job* job) { return !holds(jobs, job->id); });
  }
  if (holders && has_idle) holders->clear();
  return holders;
}

}  // namespace

Seconds needed_run(const Config& config,
                   const NodeFacts& facts,
                   const std::vector<NodeName>& nodes) {
  Seconds longest{0};
  for (const NodeName& node : nodes) {
    const Config::Place* const place = config.find(node);
    if (place == nullptr) continue;
    const NodesetConfig& nodeset = config.nodesets[place->nodeset];
    for (const Job* job : facts.jobs_on(node))
      longest = std::max(longest, run_duration(nodeset, job, Mode::Queued).run);
  }
  return longest;
}

Judgement judge(const Config& config, const NodeFacts& facts, const ResizeRequest& request) {
  const auto is_unknown = [&](const NodeName& node) { return config.find(node) == nullptr; };
  if (request.nodes.empty() || std::any_of(request.nodes.begin(), request.nodes.end(), is_unknown))
    return {};
  const JobId id = request_job(request);
  // Static nodes are asked for by themselves, never together with a job's others.
  const bool is_static = are_all_static(config, request.nodes);
  if (id == 0 && is_static) return {};
  if (is_static) {
    // Of an older release, which took a static node that a job was on for one of the job's own.
    const Seconds longest =
        config.nodesets[config.find(request.nodes.front())->nodeset].dws_flex.max_run_duration;
    if (request.run_duration > Seconds{0} && request.run_duration < longest)
      return {Fit::TooShort,
              fmt::format("its VM would live {}, a static node's is to live {}",
                          format_slurm_time(request.run_duration),
                          format_slurm_time(longest))};
  }
  const auto holders = holders_of(config, facts, request);
  if (!holders) return {};
  if (holders->empty()) return {Fit::Wrong, "no job has all of its nodes"};
  const Seconds need = needed_run(config, facts, request.nodes);
  // A request whose duration is not known is not doubted.
  const bool is_short = request.run_duration > Seconds{0} && request.run_duration < need;
  const auto owner =
      std::find_if(holders->begin(), holders->end(), [&](const Job* job) { return job->id == id; });
  // The first node of the job that it should name, too; null: none.
  const auto first_outside = [&](const Job& job) -> const NodeName* {
    if (is_static) return nullptr;
    return Missing{config, facts, job, request.nodes.front()}.first_outside(request);
  };
  if (owner != holders->end()) {
    if (const NodeName* const node = first_outside(**owner))
      return {Fit::Wrong, fmt::format("job {} also needs {}, which it does not name", id, *node)};
    if (!is_short) return {};
    return {Fit::TooShort,
            fmt::format("its VMs would live {}, its jobs need {} now",
                        format_slurm_time(request.run_duration),
                        format_slurm_time(need))};
  }
  const bool has_heir =
      !is_short && std::any_of(holders->begin(), holders->end(), [&](const Job* job) {
        return first_outside(*job) == nullptr;
      });
  if (has_heir) return {};
  return {Fit::Wrong,
          fmt::format("it was made for {}, and no other job needs exactly that",
                      id == 0 ? "no job" : fmt::format("job {}", id))};
}

bool is_long_enough(const NodesetConfig& nodeset, const Job& job, TimePoint ends, TimePoint now) {
  // Clocks differ a little.
  constexpr Seconds kSlack{120};
  // bulkInsert's is the shortest that a VM for this job may have.
  const Seconds run = run_duration(nodeset, &job, Mode::BulkInsert).run;
  const Seconds needed = wish_of(job).run ? run : std::min(job.time_limit.value_or(run), run);
  if (ends >= now + needed) return true;
  return job.start_time != TimePoint{} && ends >= job.start_time + run - kSlack;
}

}  // namespace flex
