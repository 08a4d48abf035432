// SPDX-License-Identifier: GPL-2.0-or-later
// Instance templates: what Flex Start asks of them. A template cannot be changed: each fix is a
// new one.
#include "ctl/doctor/checks.h"
#include "lib/core/duration.h"
#include "lib/gce/urls.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace flex::doctor {
namespace {

/// A template as a nodeset uses it.
struct Use {
  const Facts& facts;
  const NodesetConfig& nodeset;
  const std::string& given;
  Mode mode;
  Place place;
};

struct Fault {
  std::string_view id;
  Severity severity;
  std::string what;
  std::string_view why;
  std::string_view option;  ///< of gcloud compute instance-templates create
};

constexpr std::string_view kCreate =
    "gcloud compute instance-templates create NEW … --provisioning-model=FLEX_START "
    "--instance-termination-action=DELETE --maintenance-policy=TERMINATE "
    "--reservation-affinity=none --max-run-duration=7d";

void add(const Use& use, const Fault& fault, Findings& findings) {
  findings.push_back(
      {.id = std::string(fault.id),
       .severity = fault.severity,
       .what = fmt::format("template {}: {}", use.given, fault.what),
       .why = std::string(fault.why),
       .fix = fmt::format("make a new template with {} and name it here", fault.option),
       .place = use.place,
       .hints = {std::string(kCreate)}});
}

std::string shown(const std::string& value) {
  return value.empty() ? "not set" : value;
}

void check_model(const Use& use, const TemplateFacts& facts, Findings& findings) {
  if (facts.is_preemptible || facts.provisioning_model == "SPOT") {
    add(use,
        {.id = "template.spot",
         .severity = Severity::Error,
         .what = facts.is_preemptible ? "it is preemptible" : "provisioningModel is SPOT",
         .why = "Spot VMs are taken away at any time, and cannot wait in Flex Start's queue",
         .option = "--provisioning-model=FLEX_START"},
        findings);
  } else if (facts.provisioning_model != "FLEX_START" && use.mode != Mode::BulkInsert) {
    add(use,
        {.id = "template.model",
         .severity = Severity::Error,
         .what = fmt::format("provisioningModel is {}, not FLEX_START",
                             shown(facts.provisioning_model)),
         .why = "requests are refused, or VMs are billed at twice the price",
         .option = "--provisioning-model=FLEX_START"},
        findings);
  }
}

/// bulkInsert takes any VM: what Flex Start asks for matters only where the template says so.
bool is_flex_start(const Use& use, const TemplateFacts& facts) {
  return use.mode != Mode::BulkInsert || facts.provisioning_model == "FLEX_START";
}

bool has_gpus(const TemplateFacts& facts) {
  const auto is_of = [&](std::string_view family) {
    return facts.machine_type.starts_with(family);
  };
  return !facts.accelerators.empty() || is_of("a2-") || is_of("a3-") || is_of("a4-") ||
         is_of("a4x-") || is_of("g2-") || is_of("g4-");
}

void check_scheduling(const Use& use, const TemplateFacts& facts, Findings& findings) {
  // bulkInsert says it itself.
  if (facts.termination_action != "DELETE" && use.mode != Mode::BulkInsert)
    add(use,
        {.id = "template.termination",
         .severity = Severity::Error,
         .what = fmt::format("instanceTerminationAction is {}, not DELETE",
                             shown(facts.termination_action)),
         .why = "a VM whose time is over would stay, stopped, with its disks and its name",
         .option = "--instance-termination-action=DELETE"},
        findings);
  if (facts.on_host_maintenance != "TERMINATE" && (is_flex_start(use, facts) || has_gpus(facts)))
    add(use,
        {.id = "template.maintenance",
         .severity = Severity::Error,
         .what = fmt::format("onHostMaintenance is {}, not TERMINATE",
                             shown(facts.on_host_maintenance)),
         .why = "VMs with GPUs, and Flex Start VMs, cannot be moved: Google refuses to make them",
         .option = "--maintenance-policy=TERMINATE"},
        findings);
  if (facts.reservation != "NO_RESERVATION" && is_flex_start(use, facts))
    add(use,
        {.id = "template.reservation",
         .severity = Severity::Error,
         .what =
             fmt::format("reservationAffinity is {}, not NO_RESERVATION", shown(facts.reservation)),
         .why = "Flex Start VMs cannot use a reservation: Google refuses the request",
         .option = "--reservation-affinity=none"},
        findings);
}

void check_duration(const Use& use, const TemplateFacts& facts, Findings& findings) {
  // bulkInsert says it itself.
  if (use.mode == Mode::BulkInsert) return;
  if (!facts.max_run_duration) {
    add(use,
        {.id = "template.no_run_duration",
         .severity = Severity::Error,
         .what = "it has no maxRunDuration",
         .why = "Flex Start VMs need one; a request may only shorten it",
         .option = "--max-run-duration=7d"},
        findings);
    return;
  }
  const Seconds run = *facts.max_run_duration;
  if (run < kMinRunDuration || run > kMaxRunDuration) {
    add(use,
        {.id = "template.run_duration",
         .severity = Severity::Error,
         .what = fmt::format("maxRunDuration is {}, not 10m to 7d", format_duration(run)),
         .why = "Google takes only these",
         .option = "--max-run-duration=7d"},
        findings);
  } else if (run < use.nodeset.dws_flex.max_run_duration) {
    add(use,
        {.id = "template.run_duration",
         .severity = use.mode == Mode::Individual ? Severity::Error : Severity::Warning,
         .what = fmt::format("maxRunDuration is {}, less than max_run_duration {} of nodeset {}",
                             format_duration(run),
                             format_duration(use.nodeset.dws_flex.max_run_duration),
                             use.nodeset.name),
         .why = "VMs may end before the jobs they were made for",
         .option = "a --max-run-duration that is as long"},
        findings);
  }
}

void check_uniqueness(const Use& use, const TemplateFacts& facts, Findings& findings) {
  if (!facts.fixed_addresses.empty())
    add(use,
        {.id = "template.static_ip",
         .severity = Severity::Error,
         .what = fmt::format("it has the fixed address {}", fmt::join(facts.fixed_addresses, ", ")),
         .why = "only one VM can have it: every other one fails",
         .option = "no --address and no --private-network-ip"},
        findings);
  if (!facts.policies.empty() && is_flex_start(use, facts))
    add(use,
        {.id = "template.placement",
         .severity = Severity::Error,
         .what = fmt::format("it has the resource policy {}", fmt::join(facts.policies, ", ")),
         .why = "Flex Start VMs are placed by a workload policy of their group, which 'placement:' "
                "of the nodeset makes; with a policy in the template requests are refused",
         .option = "no --resource-policies"},
        findings);
}

void check_template(const Use& use, Findings& findings) {
  const auto found = use.facts.cloud.templates.find(use.given);
  if (found == use.facts.cloud.templates.end()) return;
  const Result<TemplateFacts>& answer = found->second;
  if (!answer) {
    // Anything else is told as a permission, or as unanswered.
    if (answer.error().kind == ErrorKind::NotFound)
      findings.push_back(
          {.id = "template.missing",
           .what = fmt::format("there is no template {}", use.given),
           .why = "no group can be made without it",
           .fix = "name one that exists: NAME, or regions/REGION/instanceTemplates/NAME",
           .place = use.place,
           .hints = {"gcloud compute instance-templates list"}});
    else if (answer.error().code == "OTHER_PROJECT")
      findings.push_back(
          {.id = "template.unseen",
           .severity = Severity::Note,
           .what = answer.error().what,
           .why = "it was not looked at",
           .fix = "see for yourself that it is one for Flex Start",
           .place = use.place,
           .hints = {fmt::format("gcloud compute instance-templates describe {}", use.given)}});
    return;
  }
  check_model(use, *answer, findings);
  check_scheduling(use, *answer, findings);
  check_duration(use, *answer, findings);
  check_uniqueness(use, *answer, findings);
  const std::string& said = use.nodeset.machine_type;
  if (!said.empty() && said != answer->machine_type)
    findings.push_back(
        {.id = "template.machine_type",
         .severity = Severity::Warning,
         .what = fmt::format("nodeset {}: machine_type is {}, but template {} has {}",
                             use.nodeset.name,
                             said,
                             use.given,
                             answer->machine_type),
         .why = "what is asked for was checked for another machine",
         .fix = fmt::format("write machine_type: {}", answer->machine_type),
         .place = yaml_place(use.facts, fmt::format("nodesets.{}.machine_type", use.nodeset.name)),
         .hints = {fmt::format("machine_type: {}", answer->machine_type)}});
}

/// Where a nodeset's own key is, or that of the defaults.
Place template_place(const Facts& facts, const NodesetConfig& nodeset) {
  const std::string key = fmt::format("nodesets.{}.instance_template", nodeset.name);
  const bool is_own = facts.yaml.lines.contains(key);
  return yaml_place(facts, is_own ? key : "defaults.instance_template");
}

/// A group keeps the template that it was made with; others get what is new.
void check_group(const Facts& facts,
                 const NodesetConfig& nodeset,
                 const Group& group,
                 Findings& findings) {
  const std::string_view has = last_part(group.instance_template);
  bool is_wanted = has.empty() || has == last_part(nodeset.instance_template);
  for (const StockoutStep& step : nodeset.on_stockout)
    is_wanted |= has == last_part(step.instance_template);
  if (is_wanted) return;
  const std::string_view wanted = last_part(nodeset.instance_template);
  findings.push_back(
      {.id = "template.group",
       .severity = Severity::Warning,
       .what = fmt::format("group {} still has template {}, nodeset {} says {}",
                           group.name,
                           has,
                           nodeset.name,
                           wanted),
       .why =
           "a group keeps the template that it was made with: its VMs, and requests that wait in "
           "it, are as before; what is asked for from now on is in a new group, and this one goes "
           "when it has been empty for empty_mig_grace",
       .fix = "nothing, if that may take its time; else power its nodes down when they are idle",
       .place = template_place(facts, nodeset)});
}

}  // namespace

void check_templates(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good()) return;
  std::set<std::string> told;
  const auto check = [&](const Use& use) {
    Findings found;
    check_template(use, found);
    // Nodesets that share a template share its faults, but not all of them are faults for each.
    for (Finding& finding : found) {
      if (told.insert(fmt::format("{} {} {}", use.given, finding.id, finding.what)).second)
        findings.push_back(std::move(finding));
    }
  };
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    check(
        {facts, nodeset, nodeset.instance_template, nodeset.mode, template_place(facts, nodeset)});
    // What a step does not say is as in the one before it.
    Mode mode = nodeset.mode;
    std::string given = nodeset.instance_template;
    for (const StockoutStep& step : nodeset.on_stockout) {
      mode = step.mode.value_or(mode);
      if (!step.instance_template.empty()) given = step.instance_template;
      check({facts,
             nodeset,
             given,
             mode,
             yaml_place(facts, fmt::format("nodesets.{}.on_stockout", nodeset.name))});
    }
  }
}

void check_groups(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good()) return;
  // With another template there is more to mend first.
  const bool is_bad = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    const std::string topic = finding.id.substr(0, finding.id.find('.'));
    return finding.severity != Severity::Note &&
           (topic == "template" || topic == "machine" || topic == "quota");
  });
  if (is_bad) return;
  for (const auto& [name, group] : facts.cloud.groups) {
    for (const NodesetConfig& nodeset : facts.yaml.config().nodesets)
      if (nodeset.name == name) check_group(facts, nodeset, group, findings);
  }
}

}  // namespace flex::doctor
