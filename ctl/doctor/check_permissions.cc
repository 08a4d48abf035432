// SPDX-License-Identifier: GPL-2.0-or-later
// What our account may do, and what Google's own account may do in the groups' name.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex::doctor {
namespace {

constexpr std::string_view kAgent = "cloudservices.gserviceaccount.com";

/// Nothing was to come of it; whatever did is named.
void check_accepted(const Probe& probe, const Error& error, Findings& findings) {
  if (error.code != "ACCEPTED") return;
  Finding finding{
      .id = "iam.probe_accepted",
      .severity = Severity::Warning,
      .what = probe.makes.empty() ? error.what
                                  : fmt::format("{}: look for {}", error.what, probe.makes),
      .why =
          "doctor asked for something impossible only to see whether it may; "
          "whatever came of it is not slurm-flex-start's",
      .fix = probe.makes.empty() ? std::string("use --read-only")
                                 : fmt::format("delete {}, and use --read-only", probe.makes)};
  if (!probe.undo.empty()) finding.hints.push_back(probe.undo);
  findings.push_back(std::move(finding));
}

void check_probes(const Facts& facts, std::set<std::string>& told, Findings& findings) {
  for (const auto& [probe, answer] : facts.cloud.probes) {
    if (!answer) check_accepted(probe, answer.error(), findings);
    if (answer || !is_missing_permission(answer.error())) continue;
    std::string permission = named_permission(answer.error().what);
    if (permission.empty()) permission = probe.permission;
    if (!told.insert(permission).second) continue;
    findings.push_back(
        {.id = "iam.permission",
         .what = fmt::format("permission {} is missing", permission),
         .why = answer.error().what,
         .fix = fmt::format(
             "add '- {}' to includedPermissions of the role, as in etc/iam-role.yaml", permission),
         .hints = {fmt::format(
             "gcloud iam roles update slurmFlexStart --project={} "
             "--add-permissions={}",
             facts.yaml.config().project.empty() ? "PROJECT" : facts.yaml.config().project,
             permission)}});
  }
}

/// Reads that only the doctor makes.
void check_own_reads(const Facts& facts, std::set<std::string>& told, Findings& findings) {
  for (const DeniedRead& read : denied_reads(facts.cloud)) {
    if (!told.insert(std::string(read.permission)).second) continue;
    findings.push_back(
        {.id = read.is_needed ? "iam.permission" : "iam.unseen",
         .severity = read.is_needed ? Severity::Error : Severity::Note,
         .what = fmt::format("permission {} is missing", read.permission),
         .why = fmt::format("{} could not be checked ({})", read.topic, read.error),
         .fix =
             fmt::format("add '- {}' to includedPermissions of the role, as in etc/iam-role.yaml",
                         read.permission),
         .hints = {fmt::format("gcloud iam roles update slurmFlexStart --project=PROJECT "
                               "--add-permissions={}",
                               read.permission)}});
  }
}

/// What groups complain about; else how to look for oneself.
void check_agent(const Facts& facts, Findings& findings) {
  const CloudLook& cloud = facts.cloud;
  std::string number = cloud.project && *cloud.project ? (*cloud.project)->number : std::string{};
  if (number.empty()) number = "PROJECT_NUMBER";
  const std::string agent = fmt::format("{}@{}", number, kAgent);
  const std::string project =
      facts.yaml.config().project.empty() ? "PROJECT" : facts.yaml.config().project;
  const std::vector<std::string> grants{
      fmt::format("gcloud projects add-iam-policy-binding {} --member=serviceAccount:{} "
                  "--role=roles/compute.instanceAdmin.v1",
                  project,
                  agent),
      fmt::format("gcloud iam service-accounts add-iam-policy-binding VM_SERVICE_ACCOUNT "
                  "--member=serviceAccount:{} --role=roles/iam.serviceAccountUser",
                  agent)};
  const auto complaint =
      std::find_if(cloud.group_errors.begin(), cloud.group_errors.end(), [](const auto& text) {
        return text.find(kAgent) != std::string::npos;
      });
  if (complaint != cloud.group_errors.end()) {
    findings.push_back({.id = "iam.service_agent",
                        .what = *complaint,
                        .why = "groups make and delete VMs in the name of this account",
                        .fix = fmt::format("give {} roles/compute.instanceAdmin.v1, and "
                                           "roles/iam.serviceAccountUser on the VMs' account",
                                           agent),
                        .hints = grants});
    return;
  }
  Finding note{.id = "iam.service_agent_unseen",
               .severity = Severity::Note,
               .what = fmt::format("the roles of {} cannot be seen from here", agent),
               .why = "groups make and delete VMs in its name",
               .fix =
                   "see that it has roles/compute.instanceAdmin.v1, and "
                   "roles/iam.serviceAccountUser on the VMs' account",
               .hints = {fmt::format("gcloud projects get-iam-policy {} --flatten=bindings "
                                     "--filter=bindings.members:{} --format='value(bindings.role)'",
                                     project,
                                     agent)}};
  note.hints.insert(note.hints.end(), grants.begin(), grants.end());
  findings.push_back(std::move(note));
}

}  // namespace

void check_permissions(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good() || facts.cloud.probes.empty()) return;
  std::set<std::string> told;
  check_probes(facts, told, findings);
  check_own_reads(facts, told, findings);
  check_agent(facts, findings);
}

}  // namespace flex::doctor
