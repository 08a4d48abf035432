// SPDX-License-Identifier: GPL-2.0-or-later
// HttpClient on libcurl's multi interface.
#pragma once

#include "lib/core/result.h"
#include "lib/gce/http.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace flex {

struct CurlSettings {
  std::size_t max_in_flight = 16;
  std::chrono::milliseconds connect_timeout{10000};
  /// Hosts besides loopback to which plain http may go: the metadata server's.
  std::vector<std::string> plain_http_hosts{};
};

/// Begins to load libcurl in a thread, and returns. May be left out.
void start_loading_curl();

/// TLS is verified, redirects are not followed, plain http goes to loopback and the hosts named
/// only, environment proxies are used for https to other hosts only. Internal: there is no
/// libcurl, or it does not start.
[[nodiscard]] Result<std::unique_ptr<HttpClient>> make_curl_http(CurlSettings settings);

}  // namespace flex
