// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/core/node_lease.h"

#include "lib/core/token.h"

#include <charconv>

namespace flex {

std::string write_lease(const NodeLease& lease) {
  return write_token({{"end", std::to_string(lease.end.time_since_epoch().count())},
                      {"nodeset", lease.nodeset},
                      {"request", lease.request}});
}

std::optional<NodeLease> read_lease(std::string_view extra) {
  for (const Token& token : find_tokens(extra)) {
    const std::string_view end = token.find("end");
    std::int64_t seconds = 0;
    const auto [last, status] = std::from_chars(end.data(), end.data() + end.size(), seconds);
    if (end.empty() || status != std::errc{} || last != end.data() + end.size() || seconds <= 0)
      continue;
    return NodeLease{.end = TimePoint{Seconds{seconds}},
                     .nodeset = std::string(token.find("nodeset")),
                     .request = std::string(token.find("request"))};
  }
  return std::nullopt;
}

}  // namespace flex
