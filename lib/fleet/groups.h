// SPDX-License-Identifier: GPL-2.0-or-later
// Which group a node's VM belongs in, and how a request says what it is for (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/core/domain.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// The nodeset's own group for its `index`-th node (mig_scope nodeset).
[[nodiscard]] MigName group_of_node(const std::string& cluster,
                                    const NodesetConfig& nodeset,
                                    std::size_t index);

/// What we write in a request's description: "slurm-flex-start job=12 nodes=a3u-[0-3]", with
/// " attempt=2" after the job from the second on. The list is left out where it would be too long
/// for a description.
[[nodiscard]] std::string request_description(JobId job,
                                              const std::vector<NodeName>& nodes,
                                              std::uint32_t attempt = 1);

/// True if the description is one of ours.
[[nodiscard]] bool is_our_request(const ResizeRequest& request);

/// The attempt in a description; 1 if it says none.
[[nodiscard]] std::uint32_t request_attempt(const ResizeRequest& request);

/// The job of a request, from its description, else from its name; 0 if neither tells.
[[nodiscard]] JobId request_job(const ResizeRequest& request);

/// The nodes in a description; empty if it has none or they cannot be read.
[[nodiscard]] std::vector<NodeName> described_nodes(std::string_view description);

/// For requests whose nodes Google does not list: those of their descriptions.
void fill_nodes(std::vector<ResizeRequest>& requests);

/// How long the VMs for a job may live, and whether that may be too short for it.
struct RunDuration {
  Seconds run{};
  bool is_capped = false;  ///< TimeLimit + margin is more than the nodeset allows
};

/// clamp(TimeLimit + run_duration_margin, 10 min, max_run_duration); max_run_duration without a
/// limit, with use_job_duration off, or without a job.
[[nodiscard]] RunDuration run_duration(const NodesetConfig& nodeset,
                                       const std::optional<Seconds>& time_limit);

}  // namespace flex
