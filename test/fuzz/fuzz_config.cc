// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as flex-start.yaml: a config that can be used, or problems in the file's order.
#include "lib/config/load.h"
#include "test/fuzz/check.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

using flex::fuzz::check;

namespace {

void check_problems(const std::vector<flex::Problem>& problems) {
  const auto is_before = [](const flex::Problem& a, const flex::Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  };
  check(std::is_sorted(problems.begin(), problems.end(), is_before), "problems are sorted");
  for (const flex::Problem& problem : problems) {
    check(problem.line >= 0 && problem.column >= 0, "a place is in the file");
    check((problem.line == 0) == (problem.column == 0), "a place is whole");
    check(problem.text().find_first_of("\n\r\x1b") == std::string::npos, "a problem is one line");
  }
}

void check_config(const flex::Config& config) {
  check(!config.region.empty(), "there is a region");
  check(!config.nodesets.empty(), "there is a nodeset");
  std::size_t nodes = 0;
  for (const flex::NodesetConfig& nodeset : config.nodesets) {
    check(!nodeset.nodes.empty(), "a nodeset has nodes");
    check(!nodeset.instance_template.empty(), "a nodeset has a template");
    const bool is_bulk = nodeset.mode == flex::Mode::BulkInsert;
    check(nodeset.dws_flex.max_run_duration >=
                  (is_bulk ? flex::kMinBulkDuration : flex::kMinRunDuration) &&
              nodeset.dws_flex.max_run_duration <= flex::kMaxRunDuration,
          "the run duration is one that Google takes");
    check(is_bulk == nodeset.dws_flex.use_bulk_insert, "both spellings say the same");
    check(nodeset.race == 1 || nodeset.race <= nodeset.zones.size(), "a race has its zones");
    check(!nodeset.placement.is_wanted() || nodeset.mig_scope == flex::MigScope::Job,
          "placement has groups of its own");
    for (const flex::StockoutStep& step : nodeset.on_stockout)
      check(step.wait.count() > 0, "a step is waited for");
    for (const std::string& reason : nodeset.repair_reasons)
      check(!reason.empty(), "a reason says something");
    nodes += nodeset.nodes.size();
  }
  check(config.places.size() == nodes, "every node has one place");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto loaded = flex::parse_config(text, "f");
  check_problems(loaded.problems);
  if (loaded.ok()) check_config(loaded.config);
  return 0;
}
