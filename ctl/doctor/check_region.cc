// SPDX-License-Identifier: GPL-2.0-or-later
// Region and zones: there, ours, and up.
#include "ctl/doctor/checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace flex::doctor {
namespace {

void check_zone(const Facts& facts,
                const std::string& zone,
                const Result<ZoneFacts>& answer,
                const Place& place,
                Findings& findings) {
  const std::string& region = facts.yaml.config().region;
  const auto& known = facts.cloud.region;
  const std::vector<std::string> zones =
      known && *known ? (*known)->zones : std::vector<std::string>{};
  const std::string all = fmt::format("zones: [{}]", fmt::join(zones, ", "));
  if (!answer) {
    if (answer.error().kind != ErrorKind::NotFound) return;
    findings.push_back({.id = "zone.missing",
                        .what = fmt::format("there is no zone {}", zone),
                        .why = "a group that names it cannot be made",
                        .fix = fmt::format("name zones of {}", region),
                        .place = place,
                        .hints = {all}});
    return;
  }
  if (answer->region != region)
    findings.push_back(
        {.id = "zone.region",
         .what = fmt::format("zone {} is in {}, not in {}", zone, answer->region, region),
         .why = "a group is of one region, and takes only its zones",
         .fix = fmt::format("name zones of {}", region),
         .place = place,
         .hints = {all}});
  else if (answer->status == "DOWN")
    findings.push_back({.id = "zone.down",
                        .severity = Severity::Warning,
                        .what = fmt::format("zone {} is DOWN", zone),
                        .why = "no VM comes up there until Google has repaired it",
                        .fix = "wait, or name other zones",
                        .place = place,
                        .hints = {all}});
}

/// Where the zone is named first: in a nodeset, or in the defaults.
Place place_of_zone(const Facts& facts, const std::string& zone) {
  for (const NodesetConfig& nodeset : facts.yaml.config().nodesets) {
    if (std::find(nodeset.zones.begin(), nodeset.zones.end(), zone) == nodeset.zones.end())
      continue;
    const std::string key = fmt::format("nodesets.{}.zones", nodeset.name);
    return yaml_place(facts, facts.yaml.lines.contains(key) ? key : "defaults.zones");
  }
  return yaml_place(facts, "region");
}

}  // namespace

void check_region(const Facts& facts, Findings& findings) {
  const CloudLook& cloud = facts.cloud;
  if (!cloud.region || !facts.yaml.is_good()) return;
  const std::string& region = facts.yaml.config().region;
  if (!*cloud.region && cloud.region->error().kind == ErrorKind::NotFound) {
    findings.push_back(
        {.id = "region.missing",
         .what = cloud.region->error().what,
         .why = "nothing can be made there",
         .fix = "name a region that the project has; see that the project's name is right",
         .place = yaml_place(facts, "region"),
         .hints = {"gcloud compute regions list"}});
    return;
  }
  if (*cloud.region && (*cloud.region)->status == "DOWN")
    findings.push_back({.id = "region.down",
                        .severity = Severity::Warning,
                        .what = fmt::format("region {} is DOWN", region),
                        .why = "no VM comes up there until Google has repaired it",
                        .fix = "wait",
                        .place = yaml_place(facts, "region")});
  for (const auto& [zone, answer] : cloud.zones)
    check_zone(facts, zone, answer, place_of_zone(facts, zone), findings);
}

}  // namespace flex::doctor
