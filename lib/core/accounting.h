// SPDX-License-Identifier: GPL-2.0-or-later
// What Slurm's accounting allows: associations and QOS, as far as they decide whether a job starts.
#pragma once

#include "lib/core/domain.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace flex {

/// How many of each TRES ("cpu", "node", "gres/gpu"; "mem" in MiB); one that is not here has no
/// limit.
using TresCounts = std::map<std::string, std::uint64_t>;

/// Empty: no limit.
struct AccountingLimits {
  std::optional<std::uint32_t> group_jobs{};    ///< GrpJobs
  std::optional<std::uint32_t> user_jobs{};     ///< MaxJobs, of a QOS MaxJobsPerUser
  std::optional<std::uint32_t> account_jobs{};  ///< MaxJobsPerAccount, of a QOS only
  std::optional<Seconds> wall{};                ///< MaxWall
  TresCounts group_tres{};                      ///< GrpTRES
  TresCounts job_tres{};                        ///< MaxTRESPerJob
  TresCounts user_tres{};                       ///< MaxTRESPerUser, of a QOS only
  TresCounts account_tres{};                    ///< MaxTRESPerAccount, of a QOS only
};

/// A user's membership in an account, or the account itself.
struct Association {
  std::uint32_t id = 0;
  std::uint32_t parent_id = 0;  ///< of the account above; 0 for the root
  std::string user{};           ///< empty: the account's own record
  std::string account{};
  std::string partition{};  ///< empty: all
  AccountingLimits limits{};
  std::vector<std::string> qos{};  ///< names of those it may use; empty: slurmctld did not say
};

struct Qos {
  std::string name{};
  AccountingLimits limits{};
  bool overrides_partition = false;          ///< OverPartQOS: it counts before the partition's QOS
  bool ignores_partition_time = false;       ///< PartitionTimeLimit
  bool ignores_partition_max_nodes = false;  ///< PartitionMaxNodes
  bool ignores_partition_min_nodes = false;  ///< PartitionMinNodes
  double limit_factor = 1;  ///< by which TRES limits of associations are multiplied
  double time_factor = 1;   ///< by which a job's time is before it is compared with limits
};

struct Accounting {
  std::vector<Association> associations{};  ///< all accounts, and those users that were asked for
  std::vector<Qos> qos{};                   ///< all

  [[nodiscard]] const Association* find(std::uint32_t id) const {
    for (const Association& each : associations) {
      if (each.id == id) return &each;
    }
    return nullptr;
  }
};

/// AccountingStorageEnforce.
struct Enforcement {
  bool associations = false;
  bool limits = false;
  bool qos = false;
};

}  // namespace flex
