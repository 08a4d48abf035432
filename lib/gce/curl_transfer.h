// SPDX-License-Identifier: GPL-2.0-or-later
// One HTTP exchange on libcurl: its options, its reply, its errors.
#pragma once

#include "lib/core/result.h"
#include "lib/gce/curl_handles.h"
#include "lib/gce/curl_http.h"
#include "lib/gce/http.h"

#include <chrono>
#include <string>

namespace flex {

/// Stays where it is while libcurl works on it: the handle points into it.
struct Transfer {
  HttpRequest request{};
  HttpClient::Answer answer{};
  CurlPtr handle{};
  CurlListPtr headers{};
  std::string body{};  ///< of the reply
  bool is_too_large = false;
};

/// Invalid: a URL that is not allowed.
[[nodiscard]] Result<Done> check_url(const std::string& url, const CurlSettings& settings);

/// Sets every option; `left` is what remains of the run.
void prepare(Transfer& transfer, const CurlSettings& settings, std::chrono::milliseconds left);

/// What came of it.
[[nodiscard]] Result<HttpResponse> finish(Transfer& transfer, CURLcode code);

}  // namespace flex
