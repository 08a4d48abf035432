// SPDX-License-Identifier: GPL-2.0-or-later
// Facts from files, slurmctld and Compute Engine: thin I/O, nothing is decided here.
#pragma once

#include "ctl/doctor/facts.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace flex::doctor {

/// Says what is being looked at now.
using Progress = std::function<void(std::string_view what)>;

struct GatherOptions {
  std::string config_file{};
  bool is_offline = false;
  bool is_read_only = false;
};

[[nodiscard]] Facts gather(const GatherOptions& options, const Progress& progress);

// ---- the parts ----

void gather_slurm_conf(Facts& facts);
void gather_yaml(const std::string& file, Facts& facts);
void gather_state(Facts& facts);
void gather_cloud(Facts& facts, const Progress& progress);

void gather_unit(Facts& facts);

/// A file of a unit's environment as systemd reads it: KEY=value, in quotes or not (pure).
[[nodiscard]] std::map<std::string, std::string> parse_environment(std::string_view text);

[[nodiscard]] FileFacts look_at(const std::string& path);

/// Asks slurmctld in a process of its own: libslurm ends the process that reads a slurm.conf it
/// does not like.
class SlurmctldLook {
 public:
  virtual ~SlurmctldLook() = default;
  /// Waits for the answer.
  virtual void finish(SlurmFacts& facts) = 0;
};

/// Before anything opens connections or threads. Null: no process could be started.
[[nodiscard]] std::unique_ptr<SlurmctldLook> ask_slurmctld();

}  // namespace flex::doctor
