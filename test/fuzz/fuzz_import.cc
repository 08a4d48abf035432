// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as a neighbour's file: a flex-start.yaml that loads, or problems.
#include "ctl/import/formats.h"
#include "lib/config/load.h"
#include "test/fuzz/check.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

using flex::fuzz::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const flex::ReadFormat read : {flex::read_slurm_gcp, flex::read_vertex}) {
    const flex::Imported imported = flex::import_text(text, "f", read, {});
    check(imported.yaml.empty() != imported.problems.empty(), "a file or problems");
    for (const flex::Problem& problem : imported.problems)
      check(problem.text().find_first_of("\n\r\x1b") == std::string::npos, "a problem is one line");
    check(!flex::to_json(imported.report, imported.problems).empty(), "the report is JSON");
    if (!imported.yaml.empty())
      check(flex::parse_config(imported.yaml, "f").ok(), "what is written loads");
  }
  return 0;
}
