// SPDX-License-Identifier: GPL-2.0-or-later
// What the program that loaded the plugin has beyond SPANK. Nothing of it is promised to be there,
// so it is looked up by name when it is needed, and libslurm is not linked.
#pragma once

#include "lib/core/node_lease.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flex::plugin {

/// The options of sbatch, salloc or srun. Undocumented in Slurm.
class ProgramOptions {
 public:
  /// Nothing if the program has none, or does not give access.
  static std::optional<ProgramOptions> find();

  /// As if typed as --name; empty if it was not.
  [[nodiscard]] std::string get(const char* name) const;

  /// False if the program refused it.
  [[nodiscard]] bool set(const char* name, const std::string& value) const;

 private:
  using Get = char* (*)(void*, const char*);
  using Set = int (*)(void*, const char*, const char*, bool);

  void* options_ = nullptr;
  Get get_ = nullptr;
  Set set_ = nullptr;
};

/// SlurmdSpoolDir as in slurm.conf; empty if it cannot be known.
[[nodiscard]] std::string slurmd_spool_dir();

/// Whose lease is asked for.
struct LeaseQuestion {
  std::string node{};  ///< this one
  /// The job's nodes, as its environment has them: believed if this node is one of them.
  std::vector<std::string> node_lists{};
  std::vector<std::string> part_lists{};  ///< of the parts of a heterogeneous job
  bool is_only_one = false;               ///< of the job's processes that asks: its batch script
};

/// What the nodes' records say.
struct Leases {
  std::vector<NodeLease> items{};
  bool is_whole = false;  ///< of all of the job's nodes
};

/// One call to slurmctld, for this node's record or for all. Takes as long as it takes and may end
/// the process: for a child. Nothing if slurmctld did not answer.
[[nodiscard]] std::optional<Leases> load_leases(const LeaseQuestion& question);

}  // namespace flex::plugin
