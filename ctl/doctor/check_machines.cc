// SPDX-License-Identifier: GPL-2.0-or-later
// Machine types: there in the zones, and such that Flex Start has them.
#include "ctl/doctor/checks.h"
#include "lib/config/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace flex::doctor {
namespace {

bool starts_with_any(std::string_view type, std::initializer_list<std::string_view> families) {
  return std::any_of(families.begin(), families.end(), [&](std::string_view family) {
    return type.starts_with(family);
  });
}

/// GPU types but A4X, the H4D, and TPUs.
bool has_flex_start(const TemplateFacts& facts) {
  const std::string& type = facts.machine_type;
  if (type.starts_with("a4x-")) return false;
  if (!facts.accelerators.empty()) return true;
  return starts_with_any(type, {"a2-", "a3-", "a4-", "g2-", "g4-", "h4d-", "ct"});
}

void check_type(const Facts& facts,
                const NodesetConfig& nodeset,
                const TemplateFacts& found,
                Findings& findings) {
  const Place place = yaml_place(facts, fmt::format("nodesets.{}.instance_template", nodeset.name));
  if (nodeset.mode != Mode::BulkInsert && !has_flex_start(found))
    findings.push_back(
        {.id = "machine.no_flex_start",
         .what = fmt::format(
             "template {}: machine type {} has no Flex Start", found.name, found.machine_type),
         .why = "requests for it are refused: Flex Start is for GPU machines (not A4X), H4D and "
                "TPUs",
         .fix = "name a template with another machine type, or set mode: bulk_insert",
         .place = place,
         .hints = {"mode: bulk_insert"}});
  if (nodeset.placement.is_wanted() && nodeset.machine_type.empty() &&
      !can_be_placed(found.machine_type))
    findings.push_back(
        {.id = "machine.placement",
         .what = fmt::format("nodeset {}: placement is not possible with machine type {}",
                             nodeset.name,
                             found.machine_type),
         .why = "Flex Start places only a3-ultragpu-, a4- and h4d- types; requests are refused",
         .fix = "take 'placement:' out, or name a template with another machine type",
         .place = yaml_place(facts, fmt::format("nodesets.{}.placement", nodeset.name))});
}

void check_in_zones(const Facts& facts,
                    const NodesetConfig& nodeset,
                    const std::string& type,
                    Findings& findings) {
  std::vector<std::string> without;
  for (const std::string& zone : nodeset.zones) {
    const auto found = facts.cloud.machine_types.find({zone, type});
    if (found == facts.cloud.machine_types.end() || found->second) continue;
    // A zone that is not there is told already.
    const auto known = facts.cloud.zones.find(zone);
    const bool is_zone = known != facts.cloud.zones.end() && known->second;
    if (is_zone && found->second.error().kind == ErrorKind::NotFound) without.push_back(zone);
  }
  if (without.empty()) return;
  const bool is_nowhere = without.size() == nodeset.zones.size();
  const std::string key = fmt::format("nodesets.{}.zones", nodeset.name);
  findings.push_back(
      {.id = "machine.not_in_zone",
       .severity = is_nowhere ? Severity::Error : Severity::Warning,
       .what = fmt::format("nodeset {}: zone {} has no machine type {}",
                           nodeset.name,
                           fmt::format("{}", fmt::join(without, ", ")),
                           type),
       .why = is_nowhere ? "no VM can ever come" : "no VM can come there",
       .fix = "name zones that have it",
       .place = yaml_place(facts, facts.yaml.lines.contains(key) ? key : "defaults.zones"),
       .hints = {fmt::format("gcloud compute machine-types list --filter='name={}'", type)}});
}

}  // namespace

void check_machines(const Facts& facts, Findings& findings) {
  if (!facts.yaml.is_good()) return;
  std::set<std::string> seen;
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    const auto found = facts.cloud.templates.find(nodeset.instance_template);
    if (found == facts.cloud.templates.end() || !found->second) continue;
    const TemplateFacts& known = *found->second;
    check_type(facts, nodeset, known, findings);
    check_in_zones(facts, nodeset, known.machine_type, findings);
  }
}

}  // namespace flex::doctor
