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
                                    std::size_t index,
                                    std::string_view variant = {});

/// The how-manieth try of which way a request is.
struct RequestWay {
  std::uint32_t attempt = 1;   ///< the first whose name was free: it says nothing of failures
  std::size_t step = 0;        ///< of on_stockout
  std::uint32_t renewed = 0;   ///< so many of the attempts did not follow a failure
  std::uint32_t failures = 0;  ///< so many requests failed in a row before this one
  bool is_race = false;        ///< others are tried at the same time
  /// How long the VMs of the request before would have lived, if that was too short; 0: it was not.
  Seconds shorter{0};

  friend bool operator==(const RequestWay&, const RequestWay&) = default;

  /// Whether this is what was asked for after the other had waited long enough.
  [[nodiscard]] bool follows(const RequestWay& other) const {
    if (step != other.step) return step > other.step;
    if (renewed != other.renewed) return renewed > other.renewed;
    return !is_race && attempt > other.attempt;
  }
};

/// What we write in a request's description: "slurm-flex-start job=12 nodes=a3u-[0-3]", with
/// " attempt=2 failures=1" after the job from the second on, and " step=1", " renewed=1", "
/// race=1", " shorter=1500" where they apply. The list is left out where it would be too long for a
/// description.
[[nodiscard]] std::string request_description(JobId job,
                                              const std::vector<NodeName>& nodes,
                                              const RequestWay& way = {});

/// True if the description is one of ours.
[[nodiscard]] bool is_our_request(const ResizeRequest& request);

/// The way in a description. One without failures is of an older version, which took every attempt
/// but the renewed ones for the next one after a failure.
[[nodiscard]] RequestWay request_way(const ResizeRequest& request);
/// The attempt in it; 1 if it says none.
[[nodiscard]] std::uint32_t request_attempt(const ResizeRequest& request);

/// The job of a request, from its description, else from its name; 0 if neither tells.
[[nodiscard]] JobId request_job(const ResizeRequest& request);

/// The nodes in a description; empty if it has none or they cannot be read.
[[nodiscard]] std::vector<NodeName> described_nodes(std::string_view description);

/// For requests whose nodes Google does not list: those of their descriptions.
void fill_nodes(std::vector<ResizeRequest>& requests);

/// How long the VMs for a job may live, and whether that is other than it would need.
struct RunDuration {
  Seconds run{};
  bool is_capped = false;  ///< TimeLimit + margin is more than the nodeset allows
  std::optional<Seconds>
      unmet_wish{};  ///< the job asked for this, which the nodeset does not allow
};

/// clamp(TimeLimit + run_duration_margin, 10 min, max_run_duration); max_run_duration without a
/// limit, with use_job_duration off, or without a job. bulkInsert takes 30 s and more; individual
/// VMs live as long as their template says, which should be max_run_duration.
[[nodiscard]] RunDuration run_duration(const NodesetConfig& nodeset,
                                       const std::optional<Seconds>& time_limit,
                                       Mode mode);

/// The same for a job that may have asked for a run duration of its own: that counts instead of its
/// TimeLimit, within what the nodeset allows. Null: nodes without a job.
[[nodiscard]] RunDuration run_duration(const NodesetConfig& nodeset, const Job* job, Mode mode);

/// How that was computed, for people: "TimeLimit 04:00:00 + run_duration_margin 00:15:00".
[[nodiscard]] std::string run_duration_text(const NodesetConfig& nodeset,
                                            const Job* job,
                                            Mode mode);

/// What the job's author is to know about it; empty: nothing.
[[nodiscard]] std::string shortfall_note(const RunDuration& duration,
                                         const std::optional<Seconds>& time_limit);

}  // namespace flex
