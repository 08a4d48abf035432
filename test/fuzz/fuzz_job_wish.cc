// SPDX-License-Identifier: GPL-2.0-or-later
// Any text as a job's comment and as a node's extra: what others wrote stays, what we wrote is read
// again.
#include "lib/core/job_wish.h"
#include "lib/core/node_lease.h"
#include "lib/fleet/node_extra.h"
#include "test/fuzz/check.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

using flex::fuzz::check;

namespace {

void check_comment(std::string_view comment) {
  const flex::JobWish seen = flex::parse_wish(comment);
  for (const std::string& problem : seen.problems)
    check(problem.find('\n') == std::string::npos, "a problem is one line");
  if (seen.run)
    check(*seen.run >= flex::kMinRunDuration && *seen.run <= flex::kMaxRunDuration,
          "a run duration is within Google's limits");
  if (seen.wait)
    check(*seen.wait >= flex::kMinWait && *seen.wait <= flex::kMaxWait, "a wait is within ours");
  check(flex::with_wish(comment, {}) == comment, "no wish changes nothing");
  const flex::JobWish wish{.run = std::chrono::hours{4}};
  const std::string written = flex::with_wish(comment, wish);
  const flex::JobWish again = flex::parse_wish(written);
  check(again.run == wish.run, "what was written is read");
  check(again.wait == seen.wait && again.on_timeout == seen.on_timeout, "the rest of it stays");
  // Words inside each other may come apart, but it never grows.
  check(flex::with_wish(written, wish).size() <= written.size(), "twice is no more than once");
}

void check_extra(std::string_view extra) {
  const flex::NodeLease lease{
      .end = flex::TimePoint{flex::Seconds{1'800'000'000}}, .nodeset = "a", .request = "j7-x"};
  const std::string written = flex::with_lease(extra, lease);
  check(flex::read_lease(written).has_value(), "what was written is read");
  const std::string cleared = flex::with_lease(written, std::nullopt);
  check(cleared.size() <= written.size(), "taking away adds nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_comment(text);
  check_extra(text);
  return 0;
}
