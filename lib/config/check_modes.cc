// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/config/checks.h"
#include "lib/config/shapes.h"
#include "lib/core/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace flex {

namespace {

void warn(Config& config, Mark mark, const std::string& what) {
  std::string text = fmt::format("{}:{}:{}: {}", config.file, mark.line, mark.column, what);
  if (std::find(config.warnings.begin(), config.warnings.end(), text) == config.warnings.end())
    config.warnings.push_back(std::move(text));
}

/// What is tried at one time.
struct Attempt {
  std::set<std::string> zones;
  Mode mode = Mode::Queued;
  std::string instance_template;
  friend bool operator==(const Attempt&, const Attempt&) = default;
};

/// What is tried from this step on: what a step does not say is as it was.
Attempt after_step(const Attempt& before, const StockoutStep& step) {
  Attempt after = before;
  if (!step.zones.empty()) after.zones = {step.zones.begin(), step.zones.end()};
  if (step.mode) after.mode = *step.mode;
  if (!step.instance_template.empty()) after.instance_template = step.instance_template;
  return after;
}

/// True if what the step asks for was read; a step of which something was refused is not judged.
bool check_step_keys(const StockoutStep& step,
                     std::size_t k,
                     const Marks& marks,
                     Problems& problems) {
  const Mark self = marks.at(fmt::format("on_stockout.{}", k));
  const auto has = [&](std::string_view key) { return marks.has(step_key(k, key)); };
  if (!has("wait")) {
    problems.add(self,
                 fmt::format("step {} of on_stockout has no wait", k + 1),
                 "say how long to wait before it: wait: 30m");
  }
  if (has("zones.none")) {
    problems.add(marks.at(step_key(k, "zones.none")),
                 fmt::format("step {} of on_stockout has an empty list of zones", k + 1),
                 "name zones, or remove the key: then they stay as they were");
  }
  if (!has("zones") && !has("mode") && !has("instance_template")) {
    problems.add(self,
                 fmt::format("step {} of on_stockout changes nothing", k + 1),
                 "give it zones, a mode or an instance_template");
  }
  return (!has("zones") || !step.zones.empty()) && (!has("mode") || step.mode) &&
         (!has("instance_template") || !step.instance_template.empty());
}

}  // namespace

std::string step_key(std::size_t step, std::string_view key) {
  return fmt::format("on_stockout.{}.{}", step, key);
}

void check_mode(NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  const bool says_bulk = marks.has("dws_flex.use_bulk_insert");
  bool& use_bulk = nodeset.dws_flex.use_bulk_insert;
  if (says_bulk && marks.has("mode") && use_bulk != (nodeset.mode == Mode::BulkInsert)) {
    problems.add(marks.at("dws_flex.use_bulk_insert"),
                 fmt::format("dws_flex.use_bulk_insert: {} contradicts mode: {} of nodeset '{}'",
                             use_bulk,
                             mode_name(nodeset.mode),
                             nodeset.name),
                 "use_bulk_insert: true is mode: bulk_insert; remove one of the two");
  } else if (use_bulk) {
    nodeset.mode = Mode::BulkInsert;
  }
  use_bulk = nodeset.mode == Mode::BulkInsert;
  if (nodeset.mode == Mode::Queued || nodeset.mig_scope != MigScope::Job) return;
  problems.add(marks.at("mig_scope"),
               fmt::format("mig_scope job is not possible with mode {} of nodeset '{}'",
                           mode_name(nodeset.mode),
                           nodeset.name),
               use_bulk ? "bulk_insert makes VMs without a group; remove mig_scope"
                        : "individual VMs of all jobs are in the nodeset's group; use mode: queued "
                          "or remove mig_scope");
}

void check_placement(Config& config,
                     NodesetConfig& nodeset,
                     const Marks& marks,
                     Problems& problems) {
  const PlacementConfig& placement = nodeset.placement;
  if (!placement.is_wanted()) return;
  const Mark mark = marks.at(placement.max_distance != 0 ? "placement.max_distance"
                                                         : "placement.accelerator_topology");
  if (placement.max_distance != 0 && !placement.accelerator_topology.empty()) {
    problems.add(marks.at("placement.accelerator_topology"),
                 "accelerator_topology and max_distance exclude each other",
                 "a topology says the distances; remove one of the two");
  }
  if (nodeset.mode != Mode::Queued) {
    problems.add(mark,
                 fmt::format("placement is not possible with mode {} of nodeset '{}'",
                             mode_name(nodeset.mode),
                             nodeset.name),
                 "VMs are placed together only when they are made together: use mode: queued");
  } else if (nodeset.mig_scope == MigScope::Nodeset && marks.has("mig_scope")) {
    warn(config, marks.at("mig_scope"), "mig_scope nodeset is taken as job, because of placement");
  }
  if (!nodeset.machine_type.empty() && !can_be_placed(nodeset.machine_type)) {
    problems.add(
        mark,
        fmt::format("placement is not possible with machine type '{}'", nodeset.machine_type),
        "Flex Start places only a3-ultragpu-, a4- and h4d- types");
  }
  nodeset.mig_scope = MigScope::Job;
}

void check_race(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (nodeset.race <= 1) return;
  if (nodeset.mode != Mode::Queued) {
    problems.add(marks.at("race"),
                 fmt::format("race is not possible with mode {} of nodeset '{}'",
                             mode_name(nodeset.mode),
                             nodeset.name),
                 "only requests that are queued can be cancelled when another one wins");
  }
  if (nodeset.race <= nodeset.zones.size()) return;
  // Zones that were all malformed are reported already.
  if (nodeset.zones.empty() && marks.has("zones") && !marks.has("zones.none")) return;
  problems.add(
      marks.at("race"),
      nodeset.zones.empty()
          ? fmt::format(
                "race {} needs the zones of nodeset '{}' by name", nodeset.race, nodeset.name)
          : fmt::format("race {} is more than the {} zone{} of nodeset '{}'",
                        nodeset.race,
                        nodeset.zones.size(),
                        nodeset.zones.size() == 1 ? "" : "s",
                        nodeset.name),
      "each request of a race goes to a zone of its own: add zones");
}

void check_on_stockout(Config& config,
                       const NodesetConfig& nodeset,
                       const Marks& marks,
                       Problems& problems) {
  Attempt now{.zones = {nodeset.zones.begin(), nodeset.zones.end()},
              .mode = nodeset.mode,
              .instance_template = nodeset.instance_template};
  Seconds waited{};
  for (std::size_t k = 0; k < nodeset.on_stockout.size(); ++k) {
    const StockoutStep& step = nodeset.on_stockout[k];
    const Mark self = marks.at(fmt::format("on_stockout.{}", k));
    if (!check_step_keys(step, k, marks, problems)) continue;
    const Attempt next = after_step(now, step);
    if (next == now && (step.mode || !step.zones.empty() || !step.instance_template.empty())) {
      problems.add(self,
                   fmt::format("step {} of on_stockout changes nothing", k + 1),
                   "it says what is tried already");
    }
    if (next.mode != Mode::Queued && nodeset.placement.is_wanted()) {
      problems.add(marks.at(step_key(k, "mode")),
                   fmt::format("step {} of on_stockout: mode {} is not possible with placement",
                               k + 1,
                               mode_name(next.mode)),
                   "VMs are placed together only when they are made together");
    }
    now = next;
    waited += step.wait;
    if (nodeset.provision_timeout > 0s && waited >= nodeset.provision_timeout) {
      warn(config,
           self,
           fmt::format("step {} of on_stockout is never reached: it comes after {}, and "
                       "provision_timeout is {}",
                       k + 1,
                       format_duration(waited),
                       format_duration(nodeset.provision_timeout)));
    }
  }
}

void check_run_duration(const NodesetConfig& nodeset, const Marks& marks, Problems& problems) {
  if (nodeset.dws_flex.max_run_duration >= kMinRunDuration) return;
  const bool is_bulk_only =
      nodeset.mode == Mode::BulkInsert &&
      std::all_of(nodeset.on_stockout.begin(), nodeset.on_stockout.end(), [](const auto& step) {
        return step.mode.value_or(Mode::BulkInsert) == Mode::BulkInsert;
      });
  if (is_bulk_only) return;
  problems.add(marks.at("dws_flex.max_run_duration"),
               fmt::format("max_run_duration {} of nodeset '{}' is too short",
                           format_duration(nodeset.dws_flex.max_run_duration),
                           nodeset.name),
               fmt::format("from {} to {}, with mode bulk_insert from {}",
                           format_duration(kMinRunDuration),
                           format_duration(kMaxRunDuration),
                           format_duration(kMinBulkDuration)));
}

}  // namespace flex
