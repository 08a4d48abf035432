// SPDX-License-Identifier: GPL-2.0-or-later
// What slurmctld asks for in the file that $SLURM_RESUME_FILE names: which jobs wait for which
// nodes.
#pragma once

#include "lib/core/names.h"
#include "lib/core/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace flex {

/// Larger files are refused. One of 10,000 jobs is about 2 MiB.
inline constexpr std::size_t kMaxResumeFile = std::size_t{16} << 20U;

struct ResumeRequest {
  struct JobEntry {
    JobId id = 0;
    std::vector<NodeName> nodes_alloc{};   ///< all nodes of the job
    std::vector<NodeName> nodes_resume{};  ///< those of them to be powered up; the rest is up
    std::string partition{};               ///< this and the rest: empty before Slurm 23.02
    std::string extra{};
    std::string features{};
    std::string reservation{};
  };

  std::vector<JobEntry> jobs{};
  /// All nodes to be powered up in this call. It may hold nodes of no job (scontrol update
  /// state=power_up), and lack nodes of a job (Slurm 26.05 makes one call per PowerAction, each
  /// with all the jobs): a node is to be powered up if it is here.
  std::vector<NodeName> all_nodes{};
};

/// Reads the shapes of Slurm 22.05 ("nodes", "all_nodes"), 23.02 ("nodes_alloc", "nodes_resume",
/// "all_nodes_resume") and 26.05, and ignores fields that it does not know. Invalid names the
/// place: line and column, or a path like jobs[3].job_id.
[[nodiscard]] Result<ResumeRequest> parse_resume_file(std::string_view text);

/// The whole file. slurmctld gives /proc/<pid>/fd/N, which has no size that could be trusted and is
/// gone when slurmctld stops: to be read before anything else. NotFound if it is gone.
[[nodiscard]] Result<std::string> read_resume_file(const std::string& path);

}  // namespace flex
