// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/job_note.h"
#include "lib/slurm/node_state.h"
#include "sweeper/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex {

std::string key_of(const ResizeRequest& request) {
  return request.group.text + "/" + request.name.text;
}

std::string retry_key(JobId job, const NodeName& node) {
  return job != 0 ? fmt::format("j{}", job) : node.text;
}

Seconds retry_delay(const RetryConfig& retry, std::uint32_t failures) {
  Seconds delay = retry.base;
  for (std::uint32_t i = 1; i < failures && delay < retry.max; ++i) delay *= 2;
  return std::min(delay, retry.max);
}

std::vector<const Job*> jobs_on(const Picture& picture, const std::vector<NodeName>& nodes) {
  std::vector<const Job*> jobs;
  std::set<JobId> seen;
  for (const NodeName& name : nodes) {
    const NodePicture* node = picture.find(name);
    if (node == nullptr) continue;
    for (const Job* job : node->jobs) {
      if (seen.insert(job->id).second) jobs.push_back(job);
    }
  }
  return jobs;
}

bool is_unserved(const NodePicture& node) {
  return node.node != nullptr && is_powering_up(*node.node) && node.is_coming_up() &&
         !is_power_down_requested(*node.node) && !node.has_vm() && !node.request;
}

void ask_for(Round& round, Rule rule, const std::string& why, const std::vector<NodeName>& nodes) {
  if (nodes.empty()) return;
  std::set<std::size_t> nodesets;
  for (const NodeName& name : nodes) nodesets.insert(round.config.find(name)->nodeset);
  AskForNodes ask;
  ask.demand = resolve_demand(
      {.config = round.config, .nodes = nodes, .request = nullptr, .jobs = &round.shot.jobs.items});
  ask.plan = plan_resume(round.config,
                         round.shot.cluster,
                         ask.demand,
                         round.picture.fleet_of({nodesets.begin(), nodesets.end()}));
  round.claim(nodes);
  round.add(rule, why, std::move(ask));
}

void tell(Round& round, Rule rule, const std::string& why, const Job& job, std::string_view text) {
  std::string comment = with_note(job.admin_comment, text);
  if (comment == job.admin_comment) return;
  round.add(rule, why, TellJob{.job = job.id, .comment = std::move(comment)});
}

void delete_instances(Round& round,
                      Rule rule,
                      const std::string& why,
                      const MigName& group,
                      const std::vector<Instance>& doomed,
                      bool keep_serial_log) {
  const std::size_t granted = round.spend(doomed.size());
  for (std::size_t at = 0; at < granted; at += kMaxRequestSize) {
    const auto begin = doomed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        doomed.begin() + static_cast<std::ptrdiff_t>(std::min(at + kMaxRequestSize, granted));
    round.add(rule,
              why,
              DeleteInstances{
                  .group = group, .instances = {begin, end}, .keep_serial_log = keep_serial_log});
  }
}

}  // namespace flex
