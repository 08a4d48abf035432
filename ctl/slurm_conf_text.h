// SPDX-License-Identifier: GPL-2.0-or-later
// The lines of slurm.conf and plugstack.conf that a flex-start.yaml needs, with why (pure).
#pragma once

#include "lib/config/config.h"
#include "lib/slurm/release.h"

#include <optional>
#include <string>
#include <vector>

namespace flex {

struct SlurmConfInput {
  const Config& config;
  SlurmRelease release{};
  std::string sbindir{};  ///< where flex-resume and the others are installed
  std::string plugin{};   ///< full path of spank_flex_start.so
};

/// A line without its end: "Key=value …", "# why", or empty.
[[nodiscard]] std::vector<std::string> slurm_conf_lines(const SlurmConfInput& input);
[[nodiscard]] std::vector<std::string> plugstack_lines(const SlurmConfInput& input);

/// What the name of a machine type tells.
struct MachineSize {
  std::optional<int> cpus{};
  std::optional<int> gpus{};
};

/// "n2-standard-8": 8 CPUs; "a3-ultragpu-8g": 8 GPUs.
[[nodiscard]] MachineSize size_of_machine(const std::string& machine_type);

}  // namespace flex
