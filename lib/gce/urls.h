// SPDX-License-Identifier: GPL-2.0-or-later
// Addresses of Compute Engine's resources, built and taken apart (pure).
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flex {

/// Everything but RFC 3986's unreserved characters and those in `keep` as %XX.
[[nodiscard]] std::string percent_encode(std::string_view text, std::string_view keep = {});

using QueryParams = std::vector<std::pair<std::string_view, std::string>>;

/// `path` with the parameters that are not empty: "?a=b&c=d", or "&…" where there is a query.
[[nodiscard]] std::string with_query(std::string path, const QueryParams& params);

/// The parts of a URL that decide whether we may go there.
struct Origin {
  std::string scheme{};  ///< lower case
  std::string host{};    ///< lower case, IPv6 without brackets
  std::string port{};    ///< as written; may be empty
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Invalid: no http(s) URL, user information in it, or characters that do not belong there.
[[nodiscard]] Result<Origin> parse_origin(std::string_view url);

/// localhost, 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback(std::string_view host);

/// An endpoint as in the config, without a "/" or "/compute/v1" at its end. Invalid: neither https
/// nor http to loopback.
[[nodiscard]] Result<std::string> parse_endpoint(std::string_view endpoint);

/// "<endpoint>/compute/v1/projects/<project>".
[[nodiscard]] std::string project_url(std::string_view endpoint, std::string_view project);

/// Paths below the project: "/regions/<region>/instanceGroupManagers" and what is below it.
[[nodiscard]] std::string groups_path(std::string_view region);
[[nodiscard]] std::string group_path(std::string_view region, const MigName& group);
[[nodiscard]] std::string requests_path(std::string_view region, const MigName& group);
[[nodiscard]] std::string request_path(std::string_view region,
                                       const MigName& group,
                                       const RequestName& request);
[[nodiscard]] std::string operation_path(std::string_view region, std::string_view operation);
[[nodiscard]] std::string zone_operation_path(std::string_view zone, std::string_view operation);
[[nodiscard]] std::string operations_path(std::string_view region);
[[nodiscard]] std::string policies_path(std::string_view region);
[[nodiscard]] std::string policy_path(std::string_view region, std::string_view policy);
[[nodiscard]] std::string instances_path(std::string_view zone);
[[nodiscard]] std::string instance_path(std::string_view zone, std::string_view instance);
/// What a VM writes on its console.
[[nodiscard]] std::string serial_path(std::string_view zone, std::string_view instance);

/// A bare name is a global template, "regions/…" and "global/…" get the project in front, anything
/// longer stays.
[[nodiscard]] std::string template_url(std::string_view project, std::string_view given);
[[nodiscard]] std::string zone_url(std::string_view project, std::string_view zone);
/// Of a resource policy of the region.
[[nodiscard]] std::string policy_url(std::string_view project,
                                     std::string_view region,
                                     std::string_view policy);

/// The zone in the URL of a VM, full or partial; empty if it names none.
[[nodiscard]] std::string_view zone_of(std::string_view url);

/// True for "us-central1-a" of "us-central1".
[[nodiscard]] bool is_zone_of(std::string_view zone, std::string_view region);

/// What follows the last "/".
[[nodiscard]] std::string_view last_part(std::string_view url);

/// The filter for names that start with `prefix`, as a list takes it; empty if `prefix` is. It may
/// let more through where `prefix` is no name.
[[nodiscard]] std::string name_filter(std::string_view prefix);
/// The same for descriptions.
[[nodiscard]] std::string description_filter(std::string_view prefix);

}  // namespace flex
