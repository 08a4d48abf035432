// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/import/draft.h"

#include "lib/config/shapes.h"
#include "lib/core/duration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace flex {

std::string NodesetDraft::path(std::string_view setting) const {
  return fmt::format("nodesets.{}.{}", name, setting);
}

namespace {

/// "a3u-[0-3]", "a3u-0".
std::string node_list(const std::string& prefix, std::size_t count) {
  return count == 1 ? prefix + "-0" : fmt::format("{}-[0-{}]", prefix, count - 1);
}

std::string render_placement(const PlacementConfig& placement) {
  return placement.max_distance != 0
             ? fmt::format("max_distance: {}", placement.max_distance)
             : fmt::format("accelerator_topology: \"{}\"", placement.accelerator_topology);
}

std::string render_nodeset(const NodesetDraft& nodeset) {
  std::string text = fmt::format(
      "  {}:\n    nodes: {}\n", nodeset.name, node_list(nodeset.prefix, nodeset.node_count));
  if (nodeset.static_count > 0)
    text += fmt::format("    static_nodes: {}\n", node_list(nodeset.prefix, nodeset.static_count));
  text += fmt::format("    instance_template: {}{}\n",
                      nodeset.instance_template,
                      nodeset.is_template_made_up ? "  # fill in the name of yours" : "");
  if (!nodeset.machine_type.empty())
    text += fmt::format("    machine_type: {}\n", nodeset.machine_type);
  if (!nodeset.zones.empty())
    text += fmt::format("    zones: [{}]\n", fmt::join(nodeset.zones, ", "));
  if (nodeset.mode == Mode::BulkInsert) text += "    mode: bulk_insert\n";
  if (nodeset.placement.is_wanted())
    text += fmt::format("    placement: {{{}}}\n", render_placement(nodeset.placement));
  return text + fmt::format("    dws_flex: {{max_run_duration: {}, use_job_duration: {}}}\n",
                            format_duration(nodeset.max_run_duration),
                            nodeset.use_job_duration);
}

}  // namespace

void Import::mapped(Mark mark, std::string from, std::string to) {
  report.entries.push_back({Fate::Mapped, mark, std::move(from), std::move(to), {}});
}

void Import::assumed(Mark mark, std::string to, std::string note) {
  report.entries.push_back({Fate::Assumed, mark, {}, std::move(to), std::move(note)});
}

void Import::no_equal(Mark mark, std::string from, std::string note) {
  report.entries.push_back({Fate::NoEqual, mark, std::move(from), {}, std::move(note)});
}

void Import::left_out(Mark mark, std::string from, std::string note) {
  report.entries.push_back({Fate::LeftOut, mark, std::move(from), {}, std::move(note)});
}

std::vector<std::string> good_zones(const std::vector<Taken<std::string>>& zones, Import& out) {
  std::vector<std::string> good;
  for (const Taken<std::string>& zone : zones) {
    if (!zone) continue;
    if (!is_zone(*zone)) {
      out.problems.add(zone.mark,
                       fmt::format("{}: {} is not a zone", zone.from, show(*zone)),
                       "a zone is like us-central1-a");
    } else if (std::find(good.begin(), good.end(), *zone) == good.end()) {
      good.push_back(*zone);
    }
  }
  return good;
}

void settle_region(Import& out) {
  Draft& draft = out.draft;
  for (const NodesetDraft& nodeset : draft.nodesets)
    if (draft.region.empty() && !nodeset.zones.empty())
      draft.region = region_of(nodeset.zones.front());
  for (const NodesetDraft& nodeset : draft.nodesets)
    if (draft.region.empty()) draft.region = template_region(nodeset.instance_template);
  if (!draft.region.empty()) return;
  draft.region = "us-central1";
  draft.is_region_made_up = true;
  out.assumed({}, "region: us-central1", "the file names neither region nor zones: fill in yours");
}

void make_up_template(NodesetDraft& nodeset, Mark mark, Import& out) {
  nodeset.instance_template = nodeset.name + "-flex";
  nodeset.is_template_made_up = true;
  out.assumed(
      mark,
      fmt::format("nodesets.{}.instance_template: {}", nodeset.name, nodeset.instance_template),
      "fill in the name of an instance template with provisioningModel FLEX_START and what "
      "is said here about disks, network, image and the like");
}

std::string render(const Draft& draft, const std::string& origin) {
  std::string text = fmt::format(
      "# Made by flexctl import from {}. Every key: flex-start.yaml(5).\n", show(origin));
  if (!draft.cluster.empty()) text += fmt::format("cluster: {}\n", draft.cluster);
  if (!draft.project.empty()) text += fmt::format("project: {}\n", draft.project);
  text += fmt::format(
      "region: {}{}\n", draft.region, draft.is_region_made_up ? "  # fill in yours" : "");
  text += "nodesets:\n";
  for (const NodesetDraft& nodeset : draft.nodesets) text += render_nodeset(nodeset);
  return text;
}

}  // namespace flex
