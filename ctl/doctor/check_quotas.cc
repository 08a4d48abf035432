// SPDX-License-Identifier: GPL-2.0-or-later
// Quotas of the region against the largest that each nodeset may become.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace flex::doctor {
namespace {

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// "nvidia-h100-80gb" is counted as NVIDIA_H100_GPUS, "nvidia-tesla-t4" as NVIDIA_T4_GPUS; only the
/// A100 has one for each size.
std::string gpu_metric(std::string type) {
  if (const std::size_t tesla = type.find("tesla-"); tesla != std::string::npos)
    type.erase(tesla, std::string_view("tesla-").size());
  if (type.ends_with("gb") && type.find("a100") == std::string::npos) type.erase(type.rfind('-'));
  std::string metric;
  for (const char c : type) metric += c == '-' ? '_' : upper(c);
  return metric + "_GPUS";
}

/// "a2-highgpu-1g" counts as A2_CPUS.
std::string family_metric(std::string_view type) {
  std::string metric;
  for (const char c : type.substr(0, type.find('-'))) metric += upper(c);
  return metric + "_CPUS";
}

struct Need {
  std::string nodeset{};
  std::int64_t each = 0;   ///< of one VM
  std::int64_t nodes = 0;  ///< VMs at most
};

/// What the nodesets want, by the name of a metric without PREEMPTIBLE_.
using Needs = std::map<std::string, Need>;

void note_need(Needs& needs, const std::string& metric, const Need& need) {
  Need& largest = needs[metric];
  if (need.each * need.nodes > largest.each * largest.nodes) largest = need;
}

const MachineTypeFacts* machine_of(const Facts& facts,
                                   const NodesetConfig& nodeset,
                                   const std::string& type) {
  for (const std::string& zone : nodeset.zones) {
    const auto found = facts.cloud.machine_types.find({zone, type});
    if (found != facts.cloud.machine_types.end() && found->second) return &*found->second;
  }
  return nullptr;
}

std::int64_t most_nodes(const NodesetConfig& nodeset) {
  const std::size_t limit = nodeset.max_nodes == 0
                                ? nodeset.nodes.size()
                                : std::min(nodeset.max_nodes, nodeset.nodes.size());
  return static_cast<std::int64_t>(limit);
}

struct Wanted {
  Needs gpus{};
  Needs cpus{};
  Needs family{};
};

Wanted wanted_by_all(const Facts& facts) {
  Wanted wanted;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    const auto found = facts.cloud.templates.find(nodeset.instance_template);
    if (found == facts.cloud.templates.end() || !found->second) continue;
    const TemplateFacts& known = *found->second;
    const MachineTypeFacts* const machine = machine_of(facts, nodeset, known.machine_type);
    // What a type brings along, its template may say again.
    const auto& accelerators = !known.accelerators.empty() || machine == nullptr
                                   ? known.accelerators
                                   : machine->accelerators;
    for (const Accelerators& gpu : accelerators)
      note_need(wanted.gpus, gpu_metric(gpu.type), {nodeset.name, gpu.count, most_nodes(nodeset)});
    if (machine == nullptr) continue;
    const Need cpus{nodeset.name, machine->cpus, most_nodes(nodeset)};
    note_need(wanted.cpus, "CPUS", cpus);
    note_need(wanted.family, family_metric(known.machine_type), cpus);
  }
  return wanted;
}

/// The quota that such VMs count against: the preemptible one, or where the project has none the
/// ordinary one. Null: the region does not list it.
const QuotaFacts* quota_for(const RegionFacts& region, const std::string& metric) {
  const QuotaFacts* const preemptible = region.quota("PREEMPTIBLE_" + metric);
  const QuotaFacts* const ordinary = region.quota(metric);
  if (preemptible != nullptr && (preemptible->limit > 0 || ordinary == nullptr)) return preemptible;
  return ordinary != nullptr && ordinary->limit > 0 ? ordinary
         : preemptible != nullptr                   ? preemptible
                                                    : ordinary;
}

void check_quota(const Facts& facts,
                 const std::string& id,
                 const QuotaFacts* quota,
                 const Need& need,
                 Findings& findings) {
  if (quota == nullptr && need.each > 0 && id == "quota.gpus")
    findings.push_back(
        {.id = "quota.unseen",
         .severity = Severity::Note,
         .what =
             fmt::format("the region does not list the quota of nodeset {}'s GPUs", need.nodeset),
         .why = "it was not checked; newer ones are shown on the page of quotas only",
         .fix = "look there",
         .place = yaml_place(facts, fmt::format("nodesets.{}", need.nodeset)),
         .hints = {"https://console.cloud.google.com/iam-admin/quotas"}});
  // A negative limit is none.
  if (quota == nullptr || quota->limit < 0) return;
  const std::int64_t all = need.each * need.nodes;
  if (need.each == 0 || quota->limit >= static_cast<double>(all)) return;
  const bool is_hopeless = quota->limit < static_cast<double>(need.each);
  findings.push_back(
      {.id = id,
       .severity = is_hopeless ? Severity::Error : Severity::Warning,
       .what = fmt::format("quota {} is {:.0f} in {}; nodeset {} may need {} ({} VMs of {})",
                           quota->metric,
                           quota->limit,
                           facts.yaml.config().region,
                           need.nodeset,
                           all,
                           need.nodes,
                           need.each),
       .why = is_hopeless ? "not even one VM fits: requests wait for ever"
                          : "a job of that size waits until there is enough quota, and Google says "
                            "so only in the request's last attempt",
       .fix = fmt::format("ask Google for more of {}, or set max_nodes: {:.0f}",
                          quota->metric,
                          std::max(1.0, std::floor(quota->limit / static_cast<double>(need.each)))),
       .place = yaml_place(facts, fmt::format("nodesets.{}", need.nodeset)),
       .hints = {"https://console.cloud.google.com/iam-admin/quotas",
                 fmt::format("gcloud compute regions describe {} --flatten=quotas --filter='"
                             "quotas.metric:{}'",
                             facts.yaml.config().region,
                             quota->metric)}});
}

void check_requests(const Facts& facts, const RegionFacts& region, Findings& findings) {
  constexpr std::size_t kGoogle = 100;
  const std::size_t ours = facts.yaml.config().api.max_active_requests;
  const QuotaFacts* const quota = region.quota("ACTIVE_RESIZE_REQUESTS");
  const bool is_queued =
      std::any_of(facts.yaml.config().nodesets.begin(),
                  facts.yaml.config().nodesets.end(),
                  [](const NodesetConfig& nodeset) { return nodeset.mode == Mode::Queued; });
  if (!is_queued) return;
  if (quota != nullptr && quota->limit >= 0 && quota->limit < static_cast<double>(ours)) {
    findings.push_back(
        {.id = "quota.requests",
         .severity = quota->limit < 1 ? Severity::Error : Severity::Warning,
         .what =
             fmt::format("quota ACTIVE_RESIZE_REQUESTS is {:.0f}, api.max_active_requests is {}",
                         quota->limit,
                         ours),
         .why = "what is beyond the quota is refused, and asked for again in every round",
         .fix = fmt::format("write max_active_requests: {:.0f}", std::max(1.0, quota->limit)),
         .place = yaml_place(facts, "api.max_active_requests"),
         .hints = {"api:",
                   fmt::format("  max_active_requests: {:.0f}", std::max(1.0, quota->limit))}});
  } else if (quota == nullptr && ours > kGoogle) {
    findings.push_back({.id = "quota.requests_unseen",
                        .severity = Severity::Note,
                        .what = fmt::format(
                            "api.max_active_requests is {}, Google's default is {}", ours, kGoogle),
                        .why = "the region does not list this quota, so it could not be compared",
                        .fix = "see that ACTIVE_RESIZE_REQUESTS was raised as far",
                        .place = yaml_place(facts, "api.max_active_requests"),
                        .hints = {"https://console.cloud.google.com/iam-admin/quotas?metric="
                                  "compute.googleapis.com/active_resize_requests"}});
  }
}

}  // namespace

void check_quotas(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good() || !facts.cloud.region || !*facts.cloud.region) return;
  const RegionFacts& region = **facts.cloud.region;
  const Wanted wanted = wanted_by_all(facts);
  for (const auto& [metric, need] : wanted.gpus)
    check_quota(facts, "quota.gpus", quota_for(region, metric), need, findings);
  for (const auto& [metric, need] : wanted.family) {
    // A family with a quota of its own does not count against that of all CPUs.
    const QuotaFacts* const own = region.quota(metric);
    const QuotaFacts* const quota = own != nullptr ? own : quota_for(region, "CPUS");
    check_quota(facts, "quota.cpus", quota, need, findings);
  }
  check_requests(facts, region, findings);
}

}  // namespace flex::doctor
