// SPDX-License-Identifier: GPL-2.0-or-later
// libFuzzer target: whatever is in the resume file, the parser neither crashes nor breaks its word.
#include "resume/request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto request =
      flex::parse_resume_file(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!request) {
    const auto& error = request.error();
    if (error.kind != flex::ErrorKind::Invalid || error.what.size() > 600) std::abort();
    return 0;
  }
  for (const auto& job : request->jobs) {
    if (job.id == 0 || job.nodes_resume.size() > job.nodes_alloc.size()) std::abort();
  }
  const auto is_unnamed = [](const flex::NodeName& node) { return node.empty(); };
  if (std::any_of(request->all_nodes.begin(), request->all_nodes.end(), is_unnamed)) std::abort();
  return 0;
}
