// SPDX-License-Identifier: GPL-2.0-or-later
// What a job's tasks find in their environment.
#pragma once

#include <array>

namespace flex::plugin {

inline constexpr const char* kEndVariable = "SLURM_FLEX_END_TIME";
inline constexpr const char* kNodesetVariable = "SLURM_FLEX_NODESET";
inline constexpr const char* kRequestVariable = "SLURM_FLEX_REQUEST";
/// Whose they are: environments are handed on.
inline constexpr const char* kJobVariable = "SLURM_FLEX_JOB_ID";

inline constexpr std::array<const char*, 4> kVariables{
    kEndVariable, kNodesetVariable, kRequestVariable, kJobVariable};

}  // namespace flex::plugin
