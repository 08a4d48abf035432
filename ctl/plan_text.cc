// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/plan_text.h"

#include "lib/core/duration.h"
#include "lib/slurm/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace flex {

namespace {

using Json = nlohmann::json;

std::string_view mode_text(GroupKind kind) {
  switch (kind) {
    case GroupKind::Queued:
      return "queued";
    case GroupKind::Individual:
      return "individual";
    case GroupKind::Loose:
      break;
  }
  return "bulk_insert";
}

/// A name with the made-up job's number in it.
std::string shown(const std::string& name, JobId job) {
  if (job != kMadeUpJob) return name;
  const std::string number = fmt::format("j{}", kMadeUpJob);
  const std::size_t at = name.find(number);
  return at == std::string::npos ? name
                                 : name.substr(0, at) + "jJOB" + name.substr(at + number.size());
}

std::string job_text(JobId job) {
  if (job == 0) return "no job";
  return job == kMadeUpJob ? "such a job" : fmt::format("job {}", job);
}

/// A request's own name depends on the job: of one that is made up only its beginning is true.
std::string request_text(const PlannedRequest& request) {
  if (request.spec.name.empty()) return {};
  if (request.job == kMadeUpJob) return "jJOB-…";
  return request.spec.name.text;
}

const std::vector<std::string>& zones_of(const GroupPlan& group, const PlannedRequest& request) {
  return group.spec.kind == GroupKind::Loose ? request.bulk.zones : group.spec.zones;
}

const std::string& template_of(const GroupPlan& group, const PlannedRequest& request) {
  return group.spec.kind == GroupKind::Loose ? request.bulk.instance_template
                                             : group.spec.instance_template;
}

std::string zones_text(const std::vector<std::string>& zones) {
  return zones.empty() ? "any zone of the region" : fmt::format("{}", fmt::join(zones, ", "));
}

JobId first_job(const GroupPlan& group) {
  return group.requests.empty() ? 0 : group.requests.front().job;
}

void add_group(std::vector<std::string>& lines, const GroupPlan& group) {
  if (group.spec.kind != GroupKind::Loose)
    lines.push_back(fmt::format("group {} ({}): {}",
                                shown(group.spec.name.text, first_job(group)),
                                mode_text(group.spec.kind),
                                group.exists ? "is there" : "would be created"));
  else
    lines.push_back(fmt::format("nodeset {}: no group (bulk_insert)", group.nodeset));
  if (group.policy && !group.exists)
    lines.push_back(fmt::format("  workload policy {}: would be created",
                                shown(group.policy->name, first_job(group))));
}

/// So many VMs, or none is kept.
std::size_t least_of(const GroupPlan& group, const PlannedRequest& request) {
  const std::size_t all = request.spec.nodes.size();
  if (group.spec.kind == GroupKind::Individual) return std::min(all, std::size_t{1});
  return group.spec.kind == GroupKind::Loose ? std::min(request.bulk.min_count, all) : all;
}

/// "2 VMs, all or nothing".
std::string count_text(const GroupPlan& group, const PlannedRequest& request) {
  const std::size_t all = request.spec.nodes.size();
  if (all == 1) return "1 VM";
  if (group.spec.kind == GroupKind::Individual) return fmt::format("{} VMs, one by one", all);
  if (least_of(group, request) < all) return fmt::format("{} VMs, or as many as there are", all);
  return fmt::format("{} VMs, all or nothing", all);
}

void add_request(std::vector<std::string>& lines,
                 const GroupPlan& group,
                 const PlannedRequest& request) {
  const std::string name = request_text(request);
  lines.push_back(fmt::format(
      "  {} for {}: {} ({}{})",
      name.empty() ? "a call" : "request " + name,
      job_text(request.job),
      fold_hostlist(request.spec.nodes),
      count_text(group, request),
      request.way.attempt > 1 ? fmt::format(", attempt {}", request.way.attempt) : std::string{}));
  lines.push_back(fmt::format(
      "    run duration {} ({})", format_slurm_time(request.spec.run_duration), request.how));
  lines.push_back(fmt::format("    zones {}; template {}",
                              zones_text(zones_of(group, request)),
                              template_of(group, request)));
  for (const auto& [holder, dead] : request.dead)
    lines.push_back(
        fmt::format("    first {} dead entries of group {} are deleted", dead.size(), holder));
  for (const auto& [holder, names] : request.awaited)
    lines.push_back(
        fmt::format("    after group {} has freed the names {}", holder, fold_hostlist(names)));
}

Json request_json(const GroupPlan& group, const PlannedRequest& request) {
  return {{"name", request_text(request)},
          {"job", request.job == kMadeUpJob ? 0 : request.job},
          {"nodes", fold_hostlist(request.spec.nodes)},
          {"n", request.spec.nodes.size()},
          {"min_n", least_of(group, request)},
          {"attempt", request.way.attempt},
          {"run_seconds", request.spec.run_duration.count()},
          {"how", request.how},
          {"zones", zones_of(group, request)},
          {"instance_template", template_of(group, request)}};
}

Json refusals_json(const PlanStory& story) {
  Json refusals = Json::array();
  for (const Refusal& refusal : story.plan.refusals)
    refusals.push_back({{"job", refusal.job == kMadeUpJob ? 0 : refusal.job},
                        {"nodes", fold_hostlist(refusal.nodes)},
                        {"n", refusal.nodes.size()},
                        {"kind", to_string(refusal.error.kind)},
                        {"why", refusal.error.what}});
  return refusals;
}

void add_rest(std::vector<std::string>& lines, const PlanStory& story) {
  for (const Refusal& refusal : story.plan.refusals)
    lines.push_back(fmt::format("refused: {} for {}: {}",
                                fold_hostlist(refusal.nodes),
                                job_text(refusal.job),
                                refusal.error.what));
  if (!story.plan.left_alone.empty())
    lines.push_back(fmt::format("left alone: {} (a VM or an active request is there)",
                                fold_hostlist(story.plan.left_alone)));
  if (!story.demand.foreign.empty())
    lines.push_back(fmt::format("left alone: {} (in no nodeset of {})",
                                fold_hostlist(story.demand.foreign),
                                story.config.file));
  for (const CappedJob& capped : story.plan.capped)
    lines.push_back(fmt::format("{} is told: {}", job_text(capped.job), capped.note));
  for (const std::string& note : story.notes) lines.push_back("note: " + note);
}

}  // namespace

bool has_refusals(const PlanStory& story) {
  return !story.plan.refusals.empty();
}

std::vector<std::string> plan_lines(const PlanStory& story) {
  std::vector<std::string> lines;
  for (const GroupPlan& group : story.plan.groups) {
    add_group(lines, group);
    for (const PlannedRequest& request : group.requests) add_request(lines, group, request);
  }
  if (story.plan.groups.empty()) lines.push_back("nothing would be asked for");
  add_rest(lines, story);
  return lines;
}

std::string plan_json(const PlanStory& story) {
  Json groups = Json::array();
  for (const GroupPlan& group : story.plan.groups) {
    Json requests = Json::array();
    for (const PlannedRequest& request : group.requests)
      requests.push_back(request_json(group, request));
    groups.push_back({{"name", shown(group.spec.name.text, first_job(group))},
                      {"nodeset", group.nodeset},
                      {"mode", mode_text(group.spec.kind)},
                      {"exists", group.exists},
                      {"policy", group.policy ? shown(group.policy->name, first_job(group)) : ""},
                      {"requests", std::move(requests)}});
  }
  Json told = Json::array();
  for (const CappedJob& capped : story.plan.capped) told.push_back(capped.note);
  return Json{{"groups", std::move(groups)},
              {"refusals", refusals_json(story)},
              {"left_alone", fold_hostlist(story.plan.left_alone)},
              {"foreign", fold_hostlist(story.demand.foreign)},
              {"told", std::move(told)},
              {"notes", story.notes}}
             .dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace flex
