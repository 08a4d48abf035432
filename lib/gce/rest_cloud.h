// SPDX-License-Identifier: GPL-2.0-or-later
// The real Cloud: Compute's REST API over an HttpClient.
#pragma once

#include "lib/core/result.h"
#include "lib/core/retry.h"
#include "lib/gce/cloud.h"
#include "lib/gce/http.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

namespace flex {

struct CloudSettings {
  std::string endpoint = "https://compute.googleapis.com";
  std::string project{};  ///< empty: asked of the metadata server
  std::string region{};
  std::string credentials = "auto";  ///< auto | metadata | path of a key file
  std::size_t max_in_flight = 16;
  std::chrono::seconds call_timeout{30};
  std::chrono::seconds run_timeout{120};
  RetryPolicy retry{};
  std::optional<uid_t> slurm_user{};  ///< whose key files root believes, too
};

/// libcurl with what such a cloud may talk to.
[[nodiscard]] Result<std::unique_ptr<HttpClient>> make_cloud_http(const CloudSettings& settings);

/// On libcurl. Invalid: an endpoint that is neither https nor http to loopback, a key file that
/// cannot be read or that others may write.
[[nodiscard]] Result<std::unique_ptr<Cloud>> open_cloud(const CloudSettings& settings);

/// The same over any HttpClient (tests).
[[nodiscard]] Result<std::unique_ptr<Cloud>> open_cloud(const CloudSettings& settings,
                                                        std::unique_ptr<HttpClient> http);

}  // namespace flex
